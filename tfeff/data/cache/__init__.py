"""Caches: a corpus as token ids on disk, written by threads and read in batches."""
