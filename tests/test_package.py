"""What a user gets who installs the package."""

import os
from importlib.metadata import version
from pathlib import Path

import pytest

import hopplus
import hopplus.games


def test_version_is_that_of_the_installed_package():
    assert hopplus.__version__ == version("hopplus")


@pytest.mark.skipif("CI" not in os.environ, reason="only CI installs the wheel and runs from another folder")
def test_ci_tests_the_wheel_and_not_the_source():
    assert "site-packages" in Path(hopplus.__file__).parts
    assert not Path("src").exists()


def test_public_names_exist():
    assert all(hasattr(hopplus.games, name) for name in hopplus.games.__all__)
