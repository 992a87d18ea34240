"""The compilation cache: a program that was compiled once is read from a folder the next time. No JAX here.

The folder is set by environment variables that JAX reads when it is imported, so that worker processes use it too.
"""

import os
import platform
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

VARIABLE = "HOPPLUS_CACHE"
OFF = "off"
PROGRAMS = "HOPPLUS_PROGRAMS"
"""The variable with the folder of whole training programs, for `runs.programs`."""
LIMIT = 2 << 30
"""Bytes. Programs that were not used for longest are deleted first."""
LEAST_SECONDS = 0.2
"""Programs that compile faster than this are not kept."""


def use_cache(place: str | None = None) -> None:
    """Keep compiled programs in the folder `place`, of HOPPLUS_CACHE, or of the user's caches; `off` keeps none.

    Call it before JAX is first used. JAX_COMPILATION_CACHE_DIR, if it is set, is left as it is.
    """
    place = place or os.environ.get(VARIABLE) or None
    if place == OFF:
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
        os.environ.pop(PROGRAMS, None)
        return
    if place is None and os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    try:
        folder = (Path(place) if place else user_caches() / "hopplus") / f"compiled-{machine()}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        print(
            f"hopplus: compiled programs cannot be kept ({error}), so every command compiles anew; "
            f"give another folder with --cache FOLDER or {VARIABLE}, or --cache {OFF}",
            file=sys.stderr,
        )
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder.resolve())
    os.environ[PROGRAMS] = str(folder.resolve().with_name(f"programs-{machine()}"))
    os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(LIMIT))  # with a limit JAX also locks the folder
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(LEAST_SECONDS))
    if jax := sys.modules.get("jax"):  # it has read its variables already
        jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
        jax.config.update("jax_compilation_cache_max_size", LIMIT)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)


def user_caches() -> Path:
    """The folder in which programs of this user keep what they can make again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def machine() -> str:
    """A name for the kind of processor: machines that share a home folder may not run each other's programs."""
    about = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        flags = (
            line for line in info.read_text(errors="replace").splitlines() if line.startswith(("flags", "Features"))
        )
        about += next(flags, "")
    return sha256(about.encode()).hexdigest()[:12]
