"""Warn about a name, a flag or a setting that a later major version removes (docs/project/releases.md)."""

import warnings

from hopplus.core.version import __version__


def warn_deprecated(old: str, instead: str, *, removed_in: str) -> None:
    """Warn the caller's caller that `old` goes away in the version `removed_in`, and say what to use instead.

    The warning is a FutureWarning, which Python shows without a flag. A removal is allowed in a new major version
    only; a version that was to remove the name and still has it raises, so that no release forgets.
    """
    parts = [int(part) for part in removed_in.split(".")]
    if len(parts) != 3 or parts[0] < 1 or parts[1:] != [0, 0]:
        raise ValueError(
            f"removed_in={removed_in!r}: only a major version removes something; write one such as '2.0.0'"
        )
    if int(__version__.split(".")[0]) >= parts[0]:
        raise RuntimeError(f"{old} was to be removed in hopplus {removed_in}, and this is {__version__}; remove it")
    message = f"{old} is deprecated and goes away in hopplus {removed_in}; use {instead}"
    warnings.warn(message, FutureWarning, stacklevel=3)
