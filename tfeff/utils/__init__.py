"""Helpers that do not depend on encoders: checks, files, processes, progress."""
