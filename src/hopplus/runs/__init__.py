"""Runs: train an agent into a folder, go on where a run stopped, and take its policies out again."""

from hopplus.runs.config import RunConfig
from hopplus.runs.run import Run, load
from hopplus.runs.training import NonFiniteRunError, train

__all__ = ["NonFiniteRunError", "Run", "RunConfig", "load", "train"]
