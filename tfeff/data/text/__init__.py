"""Documents, tokenizers, and the offsets of tokens in their text."""
