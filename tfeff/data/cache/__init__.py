"""Token ids of a corpus on disk: written by processes, read in batches."""
