"""Documents, tokenizers, and where tokens stand in their text."""
