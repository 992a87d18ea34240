"""The parts of `scripts/pictures.py`, by where their data comes from."""
