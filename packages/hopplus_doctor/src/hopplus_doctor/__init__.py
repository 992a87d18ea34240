"""The doctor of training and environments: it needs NumPy, and neither JAX nor PyTorch."""

from typing import TYPE_CHECKING, Any

from hopplus_doctor.version import __version__ as __version__

if TYPE_CHECKING:
    from hopplus_doctor.recorder import Recorder

__all__ = ["Recorder", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Recorder":  # imports NumPy, which a command's help does not need
        from hopplus_doctor.recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
