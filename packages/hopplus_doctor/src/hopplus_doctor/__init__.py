"""Finds out what is wrong with multi-agent training, from recordings, logs or environments; without JAX or PyTorch."""

from hopplus_doctor.version import __version__

__all__ = ["__version__"]
