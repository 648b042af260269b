"""More examples of a task, by replacing words (TinyBERT)."""
