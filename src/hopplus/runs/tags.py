"""The metric tags of a run and what each means.

A name in angle brackets stands for a word of the game or of the settings. `about` finds the entry of a tag as
`metrics.jsonl` has it, with its `/mean`, `/player_1` or `/player_1_of_2` at the end.
"""

import re

SEATS = re.compile(r"/(mean|player_\d+(_of_\d+)?)$")
"""The end of a tag: the mean over seats, a seat, or a seat's model of another seat."""
SPREAD = {"mean": "Mean", "std": "Standard deviation", "min": "Minimum", "max": "Maximum"}
SPREAD_OF = {
    "real/reward": "of the rewards of the update's real steps",
    "real/return": "of the critic's targets on real steps",
    "real/old_value": "of the critic's values on real steps, before the update",
    "imagined/reward": "of the rewards that the world predicted for imagined steps",
    "imagined/return": "of the critic's targets on imagined steps",
    "imagined/old_value": "of the critic's values on imagined steps, before the update",
}

TAGS: dict[str, str] = {
    "charts/episodic_return": "Return of the episodes that ended in this update; null if none ended.",
    "charts/episodes": "Number of episodes that ended in this update.",
    "charts/<event>": "Share of seats, or number, of this event of the game in an episode, as `charts/stag_rate`.",
    "charts/steps_per_second": "Environment steps per second of a block of updates (`timing.jsonl`).",
    "policy/policy_loss": "PPO's clipped objective, or the cross-entropy to the planner's probabilities.",
    "policy/value_loss": "Half the squared error of the critic on real and imagined samples.",
    "policy/value_loss_real": "The same on real samples only.",
    "policy/value_loss_imagined": "The same on imagined samples only.",
    "policy/entropy": "Entropy of the policy's action distribution, in nats.",
    "policy/approx_kl": "Estimated divergence of the policy from the one that collected the data.",
    "policy/clip_fraction": "Share of samples whose probability ratio was clipped.",
    "policy/explained_variance": "1 minus the variance of the critic's errors over that of its targets; real samples.",
    "policy/gradient_norm": "Norm of the gradient before it is scaled down.",
    "policy/auxiliary_loss": "Loss of liam's decoder: error of the others' views, cross-entropy of their actions.",
    "policy/steps": "Gradient steps of the update.",
    "policy/finite": "1 if all parameters are finite; otherwise the run stops.",
    **{f"{name}_{kind}": f"{word} {of}." for name, of in SPREAD_OF.items() for kind, word in SPREAD.items()},
    "imagined/weight": "Mean weight of imagined samples in the loss.",
    "imagined/depth": "Mean number of imagined steps since a real state, of samples with a weight.",
    "moa/ce_loss": "Cross-entropy of the opponent model on co-players' actions, before it learned from them.",
    "moa/minibatch_ce": "Cross-entropy on the minibatches that it learned from.",
    "moa/top1": "Share of actions that were its most likely one.",
    "moa/top3": "Share of actions among its three most likely ones.",
    "moa/ceiling": "The best top-1 accuracy that any opponent model can reach here.",
    "moa/misfit": "How wrong the opponent model is, from 0 to 1: overconfident, or worse than action frequencies.",
    "moa/recall/<action>": "Share of this action's occurrences that were predicted.",
    "goal/reconstruction": "The prior's loss of rebuilding a state from its goal.",
    "goal/action": "The prior's cross-entropy of the action that follows, given the goal.",
    "goal/prior_kl": "Divergence of the prior's encoding from a standard distribution.",
    "goal/mismatch": "Distance of the inferred goal from the encoding of the selected later state.",
    "goal/posterior_kl": "Divergence of the posterior from that encoding.",
    "goal/noise_kl": "Divergence of a conditional posterior's noise from a standard normal distribution.",
    "wm/loss": "Loss of the world: the sum of its parts.",
    "wm/walkers": "Part of the loss: where players go.",
    "wm/sets": "Part of the loss: cells that are on or off.",
    "wm/planes": "Part of the loss of the regression world: all planes.",
    "wm/fields": "Part of the loss of the world of fields: all entries of the next view.",
    "wm/reward": "Part of the loss: rewards.",
    "wm/ended": "Part of the loss: whether a seat's game ended.",
    "wm/board_error": "Share of unseen transitions whose next board is not right in every cell.",
    "wm/reward_error": "Share of rewards that were missed, a mean over the sizes that occurred, plus false rewards.",
    "wm/end_error": "Ends that were missed or false, over the true ones.",
    "wm/disagreement": "Share of transitions on which the members of the world disagree.",
    "trust/board": "Trust in predicted boards, from 0 to 1.",
    "trust/reward": "Trust in predicted rewards.",
    "trust/end": "Trust in predicted ends.",
    "trust/others": "Trust in the opponent model of each co-player.",
    "held_out/return": "Imagined return with line-ups of goals that nothing is learned from; --early-stop reads it.",
    "utilities/<event>": "How often a seat that is paid for this event reaches it in an episode.",
    "count/updates/<module>": "Gradient steps of a module (goals, others, world) in this update.",
    "count/samples/<module>": "Samples that a module (policy, imagined, goals, others, world) learned from.",
    "buffer/size/<module>": "Samples that a module can draw from.",
    "buffer/episode_length": "Mean number of steps until a seat left or the episode ended.",
}
"""A tag without its seat, and what it says. The number is of one update and of one seed."""


def family(tag: str) -> str:
    """The tag without its seat."""
    return SEATS.sub("", tag)


def about(tag: str) -> str | None:
    """What a tag of `metrics.jsonl` means; None for one that this list does not have, as of an agent of your own."""
    name = family(tag)
    if name in TAGS:
        return TAGS[name]
    patterns = (entry for entry in TAGS if entry.endswith(">") and name.startswith(entry[: entry.index("<")]))
    found = next((entry for entry in patterns if name[entry.index("<") :].count("/") == 0), None)
    return TAGS[found] if found else None
