"""The names of the doctor's questions. No JAX here."""

from typing import Literal

ABOUT_RUNS = ("seats", "others", "world", "critic", "time")
"""What is asked about the training of a run, in this order."""
ALL = ("game", *ABOUT_RUNS)
Symptom = Literal["value_loss", "seats", "return"]
"""What the ladder explains."""
