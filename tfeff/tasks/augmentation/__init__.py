"""Augmentation of a task's examples by replacing words (TinyBERT)."""
