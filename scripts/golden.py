"""Train the golden run folders of today's format: tests/golden/format_N/AGENT, a tiny run of every agent.

Every later version must read them (tests/runs/test_formats.py). Write the folders of a new format once, when its
number is new, and never write those of an older format again.

    python scripts/golden.py            all agents
    python scripts/golden.py hop omg    some of them
"""

import contextlib
import json
import shutil
import sys
from pathlib import Path

from hopplus.agents.named import NAMES
from hopplus.cli.main import main
from hopplus.runs.formats import FORMAT

OUT = Path(__file__).parents[1] / "tests" / "golden"
TINY = (
    "--game stag-hunt-4x4 --seeds 2 --steps 64 --envs 2 --rollout-steps 16 --network.hidden 4 --ppo.epochs 1 "
    "--ppo.minibatch-size 16"
)
ONE_SEED = TINY.replace("--seeds 2", "--seeds 1")
MODELS = (
    " --sharing shared --others.hidden 4 --goals.hidden 4 --goals.size 4 --goals.evidence 4 --modelling.minibatches 1 "
    "--modelling.minibatch-size 8"
)
SEARCH = " --planning.trees 1 --planning.simulations 4 --planning.depth 4"
WORLD = (
    " --world.hidden 4 --world.pooled 4 --replay.size 64 --replay.envs 2 --world-training.minibatches 1 "
    "--world-training.minibatch-size 16"
)
FLAGS = {
    "ppo": "ppo " + TINY,
    "mappo": "mappo " + TINY,
    "liam": "liam " + TINY + " --network.memory-size 4",
    "fcp": "fcp " + ONE_SEED + " --population.members 2 --population.steps 96",
    "ppo_gru": "ppo " + TINY + " --sharing shared --network.memory gru --network.memory-size 4",
    "omg": "omg " + TINY + MODELS,
    "direct_om": "direct_om " + TINY + MODELS + SEARCH,
    "hop": "hop " + TINY + MODELS + SEARCH,
    "hop_plus": "hop_plus " + TINY + MODELS + WORLD,
    "hop_plus_search": "hop_plus_search " + ONE_SEED + MODELS + WORLD + SEARCH,
    "hop_plus_notes": "hop_plus_notes " + ONE_SEED + MODELS + WORLD,
}
OF_POPULATION = ("population/tensorboard", "population/lock", "population/checkpoints")
UNUSED = ("tensorboard", "lock", "checkpoints/*/default/_sharding", *OF_POPULATION)
"""Parts of a folder that nothing reads."""


def write(name: str, folder: Path) -> None:
    """Train one folder and store its evaluation."""
    shutil.rmtree(folder, ignore_errors=True)
    if code := main(["train", *FLAGS[name].split(), "--out", str(folder)]):
        raise SystemExit(code)
    main(["evaluate", str(folder), "--episodes", "16"])
    for path in [path for part in UNUSED for path in folder.glob(part)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in folder.rglob("commit_success.txt"):  # orbax writes the path of the folder on this machine
        path.write_text("Checkpoint commit was successful.\n")


if __name__ == "__main__":
    missing = set(NAMES) - set(FLAGS)
    if missing:
        raise SystemExit(f"no golden folder for {', '.join(sorted(missing))}; add its flags here")
    place = OUT / f"format_{FORMAT}"
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(place):  # so that the commands in the folders name no path of this machine
        for name in sys.argv[1:] or FLAGS:
            write(name, Path(name))
    size = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file())
    print(json.dumps({"folders": sorted(FLAGS), "format": FORMAT, "bytes": size}))
