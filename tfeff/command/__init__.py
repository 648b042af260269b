"""The command `tfeff`."""
