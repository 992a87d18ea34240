"""Use hopplus as a user does who has just installed it: `python scripts/try_installed.py EXTRA`.

EXTRA is the extra that was installed, or `none`. `scripts/test_releases` runs this in clean environments.
"""

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path

import hopplus
import hopplus_doctor

PROGRAMS = Path(sys.executable).parent
MODULES = {
    "none": (),
    "pettingzoo": ("pettingzoo", "hopplus.games.bridges.pettingzoo"),
    "jaxmarl": ("jaxmarl", "hopplus.games.bridges.jaxmarl"),
    "jumanji": ("jumanji",),
    "ray": ("ray", "hopplus.runs.studies"),
    "wandb": ("wandb",),
    "docs": ("sphinx", "furo", "myst_parser", "nbclient", "ipykernel"),
}
"""What each extra brings."""
GAMES = {"jaxmarl": "jaxmarl:MPE_simple_spread_v3", "jumanji": "jumanji:LevelBasedForaging-v0"}
"""An environment of each library that becomes a game."""


def run(line: str) -> None:
    """Run one of the installed programs; stop if it fails."""
    program, *arguments = line.split()
    ended = subprocess.run([str(PROGRAMS / program), *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{line}: exit code {ended.returncode}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")


def main(extra: str) -> None:
    for package in (hopplus, hopplus_doctor):
        place = Path(str(package.__file__))
        assert "site-packages" in place.parts, f"{place} is not installed"
        assert (place.parent / "py.typed").exists(), f"{package.__name__} lost its types"
    for module in MODULES[extra]:
        importlib.import_module(module)
    if extra in GAMES:
        assert hopplus.make(GAMES[extra]).spec.num_agents > 1
    if extra == "pettingzoo":
        bridge = importlib.import_module("hopplus.games.bridges.pettingzoo")
        assert bridge.parallel_env(hopplus.make("matrix-stag-hunt")).reset(seed=0)
    if extra != "none":
        return
    folder = Path(tempfile.mkdtemp())
    run(f"hopplus train ppo --game matrix-stag-hunt --seeds 1 --steps 10000 --out {folder / 'run'}")
    run(f"hopplus evaluate {folder / 'run'} --episodes 50 --json")
    run(f"hopplus report {folder / 'run'}")
    run(f"hopplus share {folder / 'run'} --out {folder / 'page.html'}")
    run("hopplus-doctor --help")
    assert (folder / "run" / "report.html").stat().st_size > 10_000
    assert (folder / "page.html").stat().st_size > 40_000


if __name__ == "__main__":
    main(sys.argv[1])
