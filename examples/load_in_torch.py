"""Load an exported policy in PyTorch and compare it with the program that JAX runs. Needs torch and safetensors.

hopplus export runs/first --out exported
python examples/load_in_torch.py exported
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import torch
from jax import export
from safetensors.torch import load_file

folder = Path(sys.argv[1])
config, weights = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
layers = sorted({name.rsplit(".", 1)[0] for name in weights if name.startswith("policy.trunk.layers.")})


def actor_critic(inputs: torch.Tensor, seat: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of actions and the value, for a plain network: no goals, no memory, no destinations."""
    for layer in layers:
        inputs = torch.tanh(inputs @ weights[f"{layer}.weight"][seat] + weights[f"{layer}.bias"][seat])
    outputs = weights["policy.heads.weight"][seat] @ inputs + weights["policy.heads.bias"][seat]
    return outputs[:-1], outputs[-1]


def features(observation: dict[str, np.ndarray]) -> torch.Tensor:
    """An observation as one vector: categories one-hot, -1 as zeros."""
    parts = []
    for field in config["observation"]:
        array = observation[field["name"]]
        if field["kind"] == "categories":
            array = array[..., None] == np.arange(field["below"])
        parts.append(torch.tensor(array.astype(np.float32).reshape(-1)))
    return torch.cat(parts)


random = np.random.default_rng(0)
observation = {
    field["name"]: np.asarray(random.integers(0, 2, field["shape"]), field["dtype"]) for field in config["observation"]
}
legal = np.ones(len(config["action_names"]), bool)
logits, value = actor_critic(features(observation), seat=0)
ours = torch.softmax(logits, -1).numpy()

files = [(folder / f"{name}.jax_export").read_bytes() for name in ("init", "policy")]
init, policy = (export.deserialize(bytearray(content)) for content in files)
batch = jax.tree.map(lambda array: array[None], (np.int32(0), observation, legal))
seat, views, allowed = jax.tree.map(np.asarray, batch)
theirs, _ = policy.call(seat, views, allowed, init.call(seat))
assert np.allclose(ours, theirs[0], atol=1e-5)
shown = [f"{name} {share:.3f}" for name, share in zip(config["action_names"], ours, strict=True)]
print("probabilities of the first seat:", " ".join(shown))
