"""Finds out what is wrong with multi-agent training, from recordings, logs or environments; without JAX or PyTorch."""

from hopplus_doctor.recorder import Recorder, checksum
from hopplus_doctor.version import __version__

__all__ = ["Recorder", "__version__", "checksum"]
