"""hopplus can be imported and can train where the modules of Unix do not exist."""

import os
import subprocess
import sys

PROGRAM = """
import builtins, os, pkgutil, importlib, sys

HIDDEN = {"fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "syslog"}
OPTIONAL = {"jaxmarl", "pettingzoo", "gymnasium", "ray", "wandb"}
imported = builtins.__import__

def without_unix(name, globals=None, locals=None, fromlist=(), level=0):
    asking = (globals or {}).get("__name__") or ""
    if level == 0 and name.partition(".")[0] in HIDDEN and asking.partition(".")[0] == "hopplus":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return imported(name, globals, locals, fromlist, level)

builtins.__import__ = without_unix
for name in ("sched_getaffinity", "sched_setaffinity", "fork", "getuid", "getpgid", "killpg"):
    if hasattr(os, name):
        delattr(os, name)

import hopplus
for module in pkgutil.walk_packages(hopplus.__path__, "hopplus."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise

from hopplus.cli.main import main
flags = "--game matrix-stag-hunt --envs 4 --rollout-steps 10 --network.hidden 8 --seeds 1 --mesh.envs 1 --steps 40"
assert main(["train", "ppo", "--out", "run", *flags.split()]) == 0
sys.exit(main(["play", "matrix-chicken", "--seats", "keyboard,random"]))
"""


def test_only_a_keyboard_seat_needs_unix(tmp_path):
    flags = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=os.environ | flags, capture_output=True, text=True
    )
    assert ended.returncode == 2, ended.stderr
    assert (tmp_path / "run" / "checkpoints" / "1").is_dir()
    assert "a keyboard seat needs a Unix terminal" in ended.stderr.splitlines()[-1]
