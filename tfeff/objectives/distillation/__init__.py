"""A student learns what the layers of a teacher do."""
