"""What an installation costs, and how long the way from nothing to the doctor's verdict takes.

Wheels are built from this checkout. Each is installed in a fresh virtual environment, without pip's cache: seconds,
size on disk, number of packages. Then the tutorial docs/examine_your_trainer.md is followed: hopplus_doctor, PyTorch
(its build for CPUs where pip has one), one training with a planted fault, the verdict.

    python benchmarks/install.py             hopplus_doctor, hopplus, and the tutorial
    python benchmarks/install.py --quick     hopplus_doctor alone
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measure import PROGRESS, print_json, print_table

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"hopplus_doctor": ROOT / "packages" / "hopplus_doctor", "hopplus": ROOT}
TORCH_FOR_CPUS = "torch==2.13.0+cpu"
FAULT = "advantages_across_episodes"
BLAMED = "ends: advantages across episodes"


def run(*command: str | Path, allowed: tuple[int, ...] = (0,), cwd: Path | None = None) -> tuple[str, float]:
    """Stdout and seconds of a command."""
    PROGRESS.print(" ".join(Path(part).name if Path(part).is_absolute() else str(part) for part in command))
    started = time.perf_counter()
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=cwd)
    if ended.returncode not in allowed:
        raise SystemExit(ended.stdout[-1000:] + ended.stderr[-2000:])
    return ended.stdout, time.perf_counter() - started


def new_environment(folder: Path) -> Path:
    """The Python of a fresh virtual environment."""
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin" / "python"


def install(python: Path, *wanted: str | Path) -> float:
    """Seconds of pip."""
    pins = "-c", ROOT / "constraints.txt"
    return run(python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-compile", *pins, *wanted)[1]


def megabytes(folder: Path) -> float:
    """What its files take, each counted once."""
    files = {
        (each.stat().st_dev, each.stat().st_ino): each.stat().st_size for each in folder.rglob("*") if each.is_file()
    }
    return sum(files.values()) / 1e6


def installed(name: str, wheels: dict[str, Path], folder: Path) -> dict[str, Any]:
    """Install a package in a fresh environment."""
    python = new_environment(folder)
    before = megabytes(folder)
    seconds = install(python, *([wheels["hopplus_doctor"]] if name == "hopplus" else []), wheels[name])
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json")[0])
    return {
        "seconds": round(seconds, 1),
        "megabytes": round(megabytes(folder) - before, 1),
        "packages": len([each for each in listed if each["name"] not in ("pip", "setuptools")]),
        "wheel_kilobytes": round(wheels[name].stat().st_size / 1e3, 1),
    }


def install_torch(python: Path) -> float:
    """Seconds of pip; the usual build for Linux is of gigabytes, for GPUs."""
    try:
        return install(python, TORCH_FOR_CPUS)
    except SystemExit:
        return install(python, "torch")


def tutorial(wheels: dict[str, Path], folder: Path) -> dict[str, Any]:
    """Seconds of each step from an empty environment to the verdict."""
    python = new_environment(folder / "venv")
    steps = {"hopplus_doctor": install(python, wheels["hopplus_doctor"]), "PyTorch": install_torch(python)}
    version = run(python, "-c", "import torch; print(torch.__version__)")[0].strip()
    example = ROOT / "examples" / "recordings" / "ppo_torch.py"
    steps["training"] = run(python, example, "recording", "--fault", FAULT, cwd=folder)[1]
    doctor = python.parent / "hopplus-doctor"
    printed, steps["verdict"] = run(doctor, "recording", "recording", "--json", allowed=(1,), cwd=folder)
    blamed = json.loads(printed)["suspects"][0]
    assert blamed == BLAMED, blamed
    rounded = {name: round(seconds, 1) for name, seconds in steps.items()}
    return {"steps": rounded, "minutes": round(sum(steps.values()) / 60, 2), "blamed": blamed, "torch": version}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="install hopplus_doctor alone")
    quick = parser.parse_args().quick
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    figures: dict[str, Any] = {}
    with TemporaryDirectory() as work:
        folder = Path(work)
        builder = new_environment(folder / "build")
        install(builder, "build", "hatchling")
        wheels: dict[str, Path] = {}
        for name, place in PACKAGES.items():
            run(builder, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder / "dist", place)
            wheels[name] = next((folder / "dist").glob(f"{name}-*.whl"))
        names = ["hopplus_doctor"] if quick else [*PACKAGES]
        figures["installed"] = {name: installed(name, wheels, folder / name) for name in names}
        if not quick:
            figures["tutorial"] = tutorial(wheels, folder)
    rows = [
        (name, f"{each['seconds']:.0f}", f"{each['megabytes']:.0f}", str(each["packages"]))
        for name, each in figures["installed"].items()
    ]
    print_table("installed in an empty environment", ("wheel", "s", "MB", "packages"), rows)
    if not quick:
        steps = figures["tutorial"]["steps"].items()
        print_table("from nothing to the verdict", ("step", "s"), [(name, f"{seconds:.0f}") for name, seconds in steps])
    print_json(figures, ("torch",), command="python benchmarks/install.py" + (" --quick" if quick else ""))


if __name__ == "__main__":
    main()
