"""Finds out what is wrong with multi-agent training, from recordings, logs or environments; without JAX or PyTorch."""

from typing import TYPE_CHECKING, Any

from hopplus_doctor.version import __version__ as __version__

if TYPE_CHECKING:
    from hopplus_doctor.recorder import Recorder, checksum

__all__ = ["Recorder", "__version__", "checksum"]


def __getattr__(name: str) -> Any:
    """The recorder imports NumPy, which the help of a command does not need."""
    if name in ("Recorder", "checksum"):
        from hopplus_doctor import recorder

        return getattr(recorder, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
