"""What a user gets who installs the package."""

import importlib
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import hopplus
import hopplus_doctor

FOLDERS = [
    "hopplus",
    *(f"hopplus.{name}" for name in ("agents", "core", "doctor", "evaluation", "games", "learning", "models")),
    *(f"hopplus.{name}" for name in ("planning", "report", "runs", "runs.studies", "share")),
    "hopplus_doctor",
]


def test_version_is_that_of_the_installed_package():
    assert hopplus.__version__ == version("hopplus")


def test_both_packages_have_one_version():
    """Neither is on an index, so hopplus asks for exactly the doctor that lies beside it."""
    assert hopplus_doctor.__version__ == hopplus.__version__
    cited = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {hopplus.__version__}\n" in cited
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"hopplus-doctor=={hopplus_doctor.__version__}" in settings["project"]["dependencies"]


@pytest.mark.skipif("CI" not in os.environ, reason="only CI installs the wheel and runs from another folder")
def test_ci_tests_the_wheel_and_not_the_source():
    for package in (hopplus, hopplus_doctor):
        assert "site-packages" in Path(str(package.__file__)).parts
    assert not Path("src").exists()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_name_exists(folder):
    """Also after every module of the folder is imported: a module must not hide a function of its name."""
    package = importlib.import_module(folder)
    assert package.__all__
    for name in package.__all__:
        assert name in dir(package)
        importlib.import_module(getattr(getattr(package, name), "__module__", None) or folder)
    modules = [name for name in package.__all__ if isinstance(getattr(package, name), ModuleType)]
    assert modules == (["agents"] if folder == "hopplus" else [])
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = package.no_such_name


def test_the_top_level_is_what_a_notebook_needs():
    wanted = {"make", "lineup", "RunConfig", "train", "load", "evaluate", "examine", "agents", "__version__"}
    assert set(hopplus.__all__) == wanted
    agents = ["ppo", "mappo", "liam", "fcp", "omg", "direct_om", "hop", "hop_plus", "hop_plus_search", "hop_plus_notes"]
    assert list(hopplus.agents.NAMES) == agents


@pytest.mark.parametrize(
    "module", ["hopplus", "hopplus.runs.config", "hopplus.learning.config", "hopplus.learning.pretrain_config"]
)
def test_settings_are_imported_without_jax(module):
    program = f"import sys, {module}; {module}.__name__; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 0
