"""A deprecated name warns where it is used, and is removed when its version comes."""

import inspect

import pytest

from hopplus.core import deprecation
from hopplus.core.deprecation import warn_deprecated


def old_name() -> int:
    # The checks of types in tests put a function around each, which the line of the warning would count.
    inspect.unwrap(warn_deprecated)("old_name", "new_name", removed_in="2.0.0")
    return 3


def test_the_warning_names_both_names_and_the_place_of_the_call():
    with pytest.warns(
        FutureWarning, match="old_name is deprecated and goes away in hopplus 2.0.0; use new_name"
    ) as seen:
        assert old_name() == 3
    assert seen[0].filename == __file__


@pytest.mark.parametrize("version", ["1.5.0", "2.1.0", "2.0.1", "0.9.0", "2"])
def test_only_a_major_version_removes(version):
    with pytest.raises(ValueError, match="only a major version"):
        warn_deprecated("old", "new", removed_in=version)


def test_a_release_cannot_forget_to_remove(monkeypatch):
    monkeypatch.setattr(deprecation, "__version__", "2.0.0")
    with pytest.raises(RuntimeError, match="remove it"):
        old_name()
