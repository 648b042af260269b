"""Examples of tasks, and the rows and windows of tokens that they become."""
