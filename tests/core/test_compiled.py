"""The compilation cache is on by default, can be moved or turned off, and never stops a command."""

import os
import subprocess
import sys

import jax
import pytest

from hopplus.core import compiled

OF_JAX = (
    "jax_compilation_cache_dir",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
)
"""What JAX has read from its variables by the time that the tests run."""
COMPILE = """
import warnings
from hopplus.core.compiled import use_cache
use_cache()
import jax
warnings.simplefilter("always")
print(float(jax.jit(lambda x: x * 2 + 1)(3.0)))
"""


@pytest.fixture
def clean(monkeypatch):
    for name in list(os.environ):
        if name.startswith(
            ("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_ENABLE_COMPILATION", compiled.VARIABLE)
        ):
            monkeypatch.delenv(name)
    set_here = ("JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE", "JAX_ENABLE_COMPILATION_CACHE")
    for name in (*set_here, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", compiled.PROGRAMS):
        monkeypatch.setenv(name, "")  # so that what the test sets is removed after it
        os.environ.pop(name)
    used = {name: getattr(jax.config, name) for name in OF_JAX}
    yield monkeypatch
    for name, value in used.items():
        jax.config.update(name, value)


def test_it_is_in_the_users_caches_unless_it_is_moved_or_off(clean, tmp_path):
    clean.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    clean.setattr(sys, "platform", "linux")
    compiled.use_cache()
    folder = os.environ["JAX_COMPILATION_CACHE_DIR"]
    assert folder == str(tmp_path / "caches" / "hopplus" / f"compiled-{compiled.machine()}") and os.path.isdir(folder)
    assert int(os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]) == compiled.LIMIT
    assert jax.config.jax_compilation_cache_dir == folder  # JAX is in use already
    assert os.environ[compiled.PROGRAMS].startswith(str(tmp_path / "caches" / "hopplus"))
    clean.setenv(compiled.VARIABLE, str(tmp_path / "by variable"))
    clean.delenv("JAX_COMPILATION_CACHE_DIR")
    compiled.use_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"].startswith(str(tmp_path / "by variable"))
    compiled.use_cache(str(tmp_path / "by flag"))
    assert os.environ["JAX_COMPILATION_CACHE_DIR"].startswith(str(tmp_path / "by flag"))
    compiled.use_cache("off")
    assert os.environ["JAX_ENABLE_COMPILATION_CACHE"] == "false" and compiled.PROGRAMS not in os.environ


def test_jaxs_own_variable_is_kept(clean, tmp_path):
    clean.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    compiled.use_cache()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path)


@pytest.mark.usefixtures("clean")
def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    compiled.use_cache(str(tmp_path / "file"))
    said = capsys.readouterr().err
    assert "--cache FOLDER" in said and "--cache off" in said and "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_programs_are_kept_and_damaged_ones_are_compiled_again(clean, tmp_path):
    clean.setenv(compiled.VARIABLE, str(tmp_path))
    clean.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

    def run():
        done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "7.0"
        return done.stderr

    assert not run()
    kept = list(tmp_path.rglob("*-cache"))
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes()[:20])
    assert "persistent compilation cache" in run()
