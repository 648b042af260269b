"""Distillation of a teacher's layers into a student."""
