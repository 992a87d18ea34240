"""Which flags an agent leaves unused: its help does not list them. No JAX here."""

from hopplus.learning.config import LearnerConfig

LATENT_ONLY = (
    "goal_envs",
    "minibatch_envs",
    "goal_minibatch_size",
    "lookahead",
    "selector",
    "epsilon",
    "posterior_kl",
    "prior_loss",
    "prior_kl",
)
"""Settings of `modelling` that only latent goals, with a prior and a posterior, use."""

LATENT_NETWORKS = ("size", "hidden", "evidence", "posterior")
"""The same of `goals`."""


def unused_flags(learner: LearnerConfig) -> frozenset[str]:
    """The flags, and groups of flags, that these settings do not use or turn off, as field names without `--`."""
    goals, unused = learner.opponents.goals, set[str]()
    if not learner.opponents.is_used:
        unused |= {"pretrained", "goals", "others", "modelling"}
    elif not goals.is_latent:
        unused |= {f"modelling.{name}" for name in LATENT_ONLY}
        unused |= {"goals"} if goals.kind == "none" else {f"goals.{name}" for name in LATENT_NETWORKS}
    if goals.is_latent or not learner.opponents.others.as_input:
        unused.add("others.as_input")
    if learner.opponents.others.destinations or not learner.opponents.others.learned_paths:
        unused.add("others.learned_paths")
    if learner.network.critic == "central":
        unused |= {"network.memory", "network.memory_size", "network.destinations", "network.reconstruct"}
    if learner.network.reconstruct:
        unused |= {"network.critic", "network.destinations"}
    if goals.kind != "discrete":
        unused |= {"modelling.temperature", "modelling.final_temperature"}
    if not learner.modelling.max_grad_norm:
        unused.add("modelling.max_grad_norm")
    if not learner.population.is_used:
        unused.add("population")
    if not learner.ppo.imagined_epochs:
        unused.add("ppo.imagined_epochs")
    if learner.imagination.branch == "last":
        unused.add("imagination.branch")
    if learner.opponents.is_used or learner.world.is_used:
        unused |= {"network.memory", "network.memory_size", "network.critic", "network.reconstruct"}
    if goals.has_labels:
        unused.add("modelling.rewarded_only")
    if learner.planning.is_used or not goals.has_labels:
        unused.add("utilities")
    unused.add("world.pooled" if learner.world.kind == "regression" else "world.walker_weight")
    if not learner.world.is_used:
        unused |= {"replay", "world", "world_training", "pretrained_world"}
    if not learner.imagination.is_used:
        unused |= {"imagination", "early_stop"}
    if learner.imagination.is_used or learner.planning.is_used:
        unused.add("ppo.ranked_reward")
    unused |= {"planning.model", "planning.policy_weight"} if learner.planning.is_used else {"planning"}
    return frozenset(unused)
