"""`python -m tfeff.encoders` prints the table of presets."""

from tfeff.encoders.systems import systems_table

if __name__ == "__main__":
    print(systems_table())
