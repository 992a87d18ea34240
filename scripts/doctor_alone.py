"""Record a training in NumPy alone and examine it, in an environment that has hopplus_doctor and neither JAX nor torch.

    python scripts/doctor_alone.py PROGRAM

`PROGRAM` is the installed hopplus-doctor. CI runs this with the wheel.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import hopplus_doctor

UNWANTED = ("jax", "torch", "hopplus", "tensorflow", "equinox")


def main(program: str) -> None:
    found = [name for name in UNWANTED if importlib.util.find_spec(name) is not None]
    assert not found, f"{found} can be imported, so this proves nothing"
    folder = Path(tempfile.mkdtemp())
    random = np.random.default_rng(0)
    recorder = hopplus_doctor.Recorder(folder / "recording", ["red", "blue"], discount=0.9, gae_lambda=1.0)
    for update in range(3):
        rewards, values = random.normal(size=(2, 2, 4, 10))
        ends = np.ones(rewards.shape, bool)
        advantages = rewards[::-1] - values  # each seat learns from the other's rewards
        recorder.record(update, rewards=rewards, values=values, terminated=ends, advantages=advantages)
    recorder.save()
    (folder / "log.csv").write_text("step,agent_0/return,value_loss\n0,1.0,2.0\n1,1.5,nan\n2,1.0,nan\n")
    for verb, place, part in (("recording", "recording", "rewards"), ("logs", "log.csv", "critic")):
        page = folder / f"{verb}.html"
        line = [program, verb, str(folder / place), "--json", "--page", str(page)]
        ended = subprocess.run(line, capture_output=True, text=True, check=False)
        assert ended.returncode == 1, ended.stderr
        examination = json.loads(ended.stdout)
        assert examination["suspects"][0] == part, examination["suspects"]
        assert "Something is wrong" in page.read_text(encoding="utf-8")
    print("the doctor alone found both faults")


if __name__ == "__main__":
    main(sys.argv[1])
