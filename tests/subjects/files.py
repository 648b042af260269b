"""Damage of files."""


def flip_bit(path, index, bit=0):
    """Flips a bit of the byte at `index`; a second call restores the file."""
    with open(path, "r+b") as file:
        file.seek(index)
        (byte,) = file.read(1)
        file.seek(index)
        file.write(bytes([byte ^ 1 << bit]))
