"""Is the experience that a seat learns from right? The rollout of one update is recomputed here and compared.

Nothing of the learner's own arithmetic is used: rewards come from the rules, targets from a loop over time. All
findings are exact, up to rounding: a correct program has no alarm, trained or not. Only "planes and actions" is a
judgement: it rests on an estimate of mutual information.
"""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int, Key
from scipy.stats import entropy

from hopplus.doctor.examined_run import ExaminedRun
from hopplus.doctor.influence import Influence
from hopplus.games.game import GameSpec, ego_order
from hopplus.learning.initial import by_seat
from hopplus.learning.learner import value_scale
from hopplus.learning.state import Experience, LearnerState
from hopplus.models import actor_critic, world
from hopplus.models.world import Transition
from hopplus_doctor.answer import Finding, Picture

TOLERANCE = 1e-3
"""Relative to the largest reward; a sum in another order differs by less."""
CLEAR = 0.1
"""Actions count as misaligned if another seat's action explains a walker better by this many nats."""


def streams(examined: ExaminedRun) -> Finding:
    """Does each seat's random stream decide its own actions only? With one stream changed, only the first actions of
    that seat may change."""
    state = examined.state(0)

    def first(state):
        return np.asarray(examined.play(state).steps.actions[:, 0])

    usual = first(state)
    num_agents = usual.shape[1]
    changed = np.zeros((num_agents, num_agents))
    for seat in range(num_agents):
        other = jax.random.fold_in(state.keys.seats[seat], 1)
        changed[seat] = np.mean(first(_with_key(state, seat, other)) != usual, axis=0)
    influence = Influence(tuple(f"player_{seat + 1}" for seat in range(num_agents)), changed)
    picture = influence.picture("share of first actions that change with a seat's random stream", "stream", "action")
    about = partial(Finding, "random streams", "random streams", "exact", picture=picture)
    if influence.wrong.any():
        seat, victim, share = influence.worst
        return about(
            "broken",
            f"a new random stream for {seat} changes {share:.0%} of the first actions of {victim}",
            next="look for a key that is used for several seats; split it by seat",
        )
    if not influence.own.all():
        seat = influence.names[int(influence.own.argmin())]
        words = f"no first action of {seat} is random, so its random stream cannot be checked"
        return about("not enough evidence", words, next="examine a run with a higher --ppo.entropy-coefficient")
    least = influence.own.min()
    return about("fine", f"each seat samples its own actions: {least:.0%} or more of them change with its own stream")


def _with_key(state: LearnerState, seat: int, key: Key[Array, ""]) -> LearnerState:
    data = jax.random.key_data(state.keys.seats).at[seat].set(jax.random.key_data(key))
    return replace(state, keys=replace(state.keys, seats=jax.random.wrap_key_data(data)))


def samples(examined: ExaminedRun) -> Finding:
    """Does a seat learn from all steps in which it was in the game, and from no others?"""
    shares = np.zeros((len(examined.experience), len(examined.seats)))
    wrong = np.zeros_like(shares)
    for seed, experience in enumerate(examined.experience):
        there, active = _there(examined, experience), np.asarray(experience.batch.active)
        shares[seed] = active.sum((1, 2)) / np.maximum(there.sum((1, 2)), 1)
        wrong[seed] = (active != there).mean((1, 2))
    means = shares.mean(axis=0)
    title = "samples that a seat learns from, over the steps that it played"
    picture = Picture("bars", title, examined.seats, {"samples over steps": means.tolist()})
    about = partial(Finding, "samples", "buffer", "exact", picture=picture)
    if wrong.max() > 0:
        seat = int(wrong.mean(axis=0).argmax())
        return about(
            "broken",
            f"{examined.seats[seat]} learns from {means[seat]:.0%} of the steps that it played, the others from "
            f"{np.delete(means, seat).mean():.0%}",
            next="look at the mask of samples of that seat: is its buffer filled as often as the others'?",
        )
    return about("fine", "every seat learns from all steps that it played, and from none after it left")


def _there(examined: ExaminedRun, experience: Experience) -> Bool[np.ndarray, "seats envs time"]:
    """Whether a seat is in the game: on a board, whether it sees itself; otherwise as the rollout recorded it.

    No policy learns from a seat that acts at random, for a hidden utility: it counts as absent.
    """
    if not examined.has_board or examined.game.spec.walkers_return:
        there = _of_seats(examined, experience.steps.in_game)
    else:
        seen = experience.batch.observation
        there = np.asarray(seen["planes"])[..., 0].any(axis=(-1, -2)) & (np.asarray(seen["time"]) < 1)
    if experience.steps.kinds is None:
        return there
    return there & (_of_seats(examined, experience.steps.kinds) <= len(examined.game.spec.events))


def _of_seats(examined: ExaminedRun, recorded: Array) -> np.ndarray:
    """Move the seats that learn to the front: [envs, time, agents] -> [seats, envs, time]."""
    return np.moveaxis(np.asarray(recorded), 2, 0)[: len(examined.seats)]


@cache
def targets(examined: ExaminedRun) -> list[Finding]:
    """Are the rewards those of the rules, and do the critic's targets follow from the rewards?"""
    if examined.learner.ppo.ranked_reward:
        return []
    scale = value_scale(examined.task)
    recorded = [_of_seats(examined, experience.steps.rewards) for experience in examined.experience]
    wrong_rewards, wrong_targets = np.zeros((2, len(examined.seats)))
    try:
        paid, source = _rewards_by_the_rules(examined), "the rules"
    except NotImplementedError:  # without from_view the rules cannot be asked
        paid, source = recorded, "the recorded rewards"
    for experience, rewards, true in zip(examined.experience, recorded, paid, strict=True):
        active = np.asarray(experience.batch.active)
        expected = _targets(examined, experience, _with_utilities(examined, experience, true))
        off = np.abs(np.asarray(experience.batch.targets) - expected) > TOLERANCE * scale
        wrong_rewards += (active & (np.abs(rewards - true) > TOLERANCE * scale)).sum((1, 2))
        wrong_targets += (active & off).sum((1, 2)) / active.sum((1, 2)).clip(1) / len(examined.experience)
    words = "of the critic's targets of {seat} do not follow from its rewards"
    findings = [_missed(examined, "targets", source, wrong_targets, f"{wrong_targets.max():.0%} {words}")]
    if source == "the rules":
        words = f"{wrong_rewards.max():.0f} steps of {{seat}} hold another reward than the rules pay it"
        findings.insert(0, _missed(examined, "rewards", source, wrong_rewards, words))
    return findings


def _with_utilities(examined: ExaminedRun, experience: Experience, rewards: np.ndarray) -> np.ndarray:
    """The rewards that seats learn from: a seat with a hidden utility is paid for its event alone."""
    if experience.steps.kinds is None:
        return rewards
    kinds, learner = _of_seats(examined, experience.steps.kinds), examined.learner
    events = np.moveaxis(np.asarray(experience.steps.events), -1, 0)[: len(examined.seats)]
    of_kind = np.arange(1, events.shape[-1] + 1) == kinds[..., None]
    paid = (events & of_kind).any(-1) * learner.utilities.reward * value_scale(examined.task)
    return np.where(kinds == 0, rewards, paid)


def _missed(examined: ExaminedRun, check: str, source: str, missed: np.ndarray, words: str) -> Finding:
    picture = Picture("bars", f"{check} that are wrong, by seat", examined.seats, {"wrong": missed.tolist()})
    about = partial(Finding, check, "rewards", "exact", picture=picture)
    if not missed.any():
        return about("fine", f"all {check} are right: recomputed from {source}, they are the same")
    return about(
        "broken",
        words.format(seat=examined.seats[int(missed.argmax())]),
        next="check where rewards are put into the buffer: does every seat get its own?",
    )


def _rewards_by_the_rules(examined: ExaminedRun) -> list[np.ndarray]:
    """For each seed, the rewards [seats, envs, time] that the rules give for each seat's view and all actions."""
    game, order = examined.game, jnp.asarray(ego_order(examined.game.spec.num_agents)[: len(examined.seats)])

    def one(view, actions):
        return game.step(game.from_view(view), actions, key=jax.random.key(0))[1][0]

    @jax.jit
    def of_seed(experience: Experience):
        actions = jnp.moveaxis(experience.steps.actions[..., order], 2, 0)
        return jax.vmap(jax.vmap(jax.vmap(one)))(experience.batch.observation, actions)

    return [np.asarray(of_seed(experience)) for experience in examined.experience]


def _targets(
    examined: ExaminedRun, experience: Experience, rewards: np.ndarray
) -> Float64[np.ndarray, "seats envs time"]:
    discount, gae_lambda = examined.learner.ppo.discount, examined.learner.ppo.gae_lambda
    values, ended = (
        np.asarray(experience.batch.values, np.float64),
        _of_seats(examined, experience.steps.terminated_after),
    )
    next_value, advantage = np.asarray(experience.last_values, np.float64).T, np.zeros(values.shape[:2])
    targets = np.zeros(values.shape)
    for step in reversed(range(values.shape[2])):
        goes_on = 1.0 - ended[..., step]
        surprise = rewards[..., step] + discount * goes_on * next_value - values[..., step]
        advantage = surprise + discount * gae_lambda * goes_on * advantage
        targets[..., step] = values[..., step] + advantage
        next_value = values[..., step]
    return targets


@cache
def goals(examined: ExaminedRun) -> Finding | None:
    """Are the recorded goals those that the policy read? Then the recorded values follow from them."""
    sizes = np.zeros((len(examined.experience), len(examined.seats)))
    off = np.zeros_like(sizes)
    if examined.experience[0].batch.goals.shape[-1] == 0:
        return None
    recompute = jax.jit(jax.vmap(jax.vmap(lambda params, *seen: actor_critic.apply(params, *seen)[1], (None, 0, 0, 0))))
    for seed, experience in enumerate(examined.experience):
        batch = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0], -1, *leaf.shape[3:]), experience.batch)
        policies = by_seat(examined.task, examined.state(seed).learners.policy.params)
        values = np.asarray(recompute(policies, batch.observation, batch.legal, batch.goals))
        active = np.asarray(batch.active)
        wrong = np.abs(values - np.asarray(batch.values)) > TOLERANCE * np.maximum(1.0, np.abs(values))
        off[seed] = (wrong & active).sum(1) / active.sum(1).clip(1)
        has_goals = np.abs(np.asarray(batch.goals)).sum((-1, -2)) > 0
        sizes[seed] = (has_goals & active).sum(1) / active.sum(1).clip(1)
    recorded, missed = sizes.mean(0), off.mean(0)
    title = "steps with recorded goals, and steps whose values follow from them"
    series = {"with goals": recorded.tolist(), "values follow": (1 - missed).tolist()}
    picture = Picture("bars", title, examined.seats, series)
    about = partial(Finding, "goals in the record", "goals", "exact", picture=picture)
    if missed.max() > 0.01 or (recorded.min() == 0 < recorded.max()):
        seat = int(np.lexsort((-missed, recorded))[0])
        return about(
            "broken",
            f"{examined.seats[seat]} has goals in {recorded[seat]:.0%} of its record, the others in "
            f"{np.delete(recorded, seat).mean():.0%}; {missed[seat]:.0%} of its values do not follow from them",
            next="check where goals are recorded: is it the vector that the policy read?",
        )
    return about("fine", "the recorded goals are those that the policies read")


@cache
def examples_after_leaving(examined: ExaminedRun) -> Finding | None:
    """Do the opponent models learn only from steps in which both players are on the board?"""
    if examined.experience[0].opponent_data is None or not examined.has_board or examined.game.spec.walkers_return:
        return None
    shares = []
    for experience in examined.experience:
        assert experience.opponent_data is not None and experience.opponent_data.observation is not None
        planes = np.asarray(experience.opponent_data.observation["planes"])[..., : examined.game.spec.num_walkers]
        there = np.asarray(planes.any(axis=(-2, -3)))
        own, others = there[..., :1], there[..., 1:]
        both = own if examined.game.spec.sums_others else own & others
        valid = np.asarray(experience.opponent_data.valid)
        shares.append((valid & ~both).sum((1, 2, 3)) / valid.sum((1, 2, 3)).clip(1))
    share = np.mean(shares, axis=0)
    title = "examples of co-players that had left the board"
    picture = Picture("bars", title, examined.seats, {"share": share.tolist()})
    about = partial(Finding, "examples after leaving", "others: data", "exact", picture=picture)
    if share.max() > 0:
        return about(
            "broken",
            f"{share.max():.0%} of the opponent models' examples are steps after a player had left",
            next="mask the opponent data by the players that are still in the game",
        )
    return about("fine", "no opponent model learns from steps after a player left")


@cache
def alignment(examined: ExaminedRun) -> Finding | None:
    """Does each walker in a world's data move as its own action says? Measured by mutual information, per learner."""
    recorded = [experience.transitions for experience in examined.experience if experience.transitions is not None]
    spec = examined.game.spec
    if not recorded or not world.has_shared_board(spec):
        return None
    order = jnp.asarray(ego_order(spec.num_agents), jnp.int32)
    means, lead = np.zeros((spec.num_agents, spec.num_agents)), np.inf
    blamed = ""
    for transitions in recorded:
        for seat, name in enumerate(examined.seats):
            information = _explained(spec, world.seen_by(spec, transitions, order[seat]))
            means += information / (len(recorded) * len(examined.seats))
            others = np.where(np.eye(len(information), dtype=bool), -np.inf, information).max(axis=1)
            if np.min(np.diag(information) - others) < lead:
                lead, blamed = float(np.min(np.diag(information) - others)), name
    places = [f"walker {place + 1}" for place in range(spec.num_agents)]
    columns = {f"action {place + 1}": means[:, place].tolist() for place in range(spec.num_agents)}
    title = "information of each action about each walker, in the learner's order of seats"
    picture = Picture("matrix", title, tuple(places), columns, unit="nats")
    threshold = f"broken if another seat's action has {CLEAR} nats more information"
    about = partial(Finding, "planes and actions", "world: data", "judgement", threshold=threshold, picture=picture)
    if lead < -CLEAR:
        return about(
            "broken",
            f"in the data of {blamed}'s world, another seat's action has {-lead:.2f} nats more information about a "
            "walker's move than its own",
            next="check the order of seats in the world's data: planes and actions must be in the same order",
        )
    return about("fine", "every walker moves as its own action says, in every learner's order")


def _explained(spec: GameSpec, transition: Transition) -> Float64[np.ndarray, "walkers actions"]:
    """Mutual information of walker i's move and seat j's action, over steps with walker i on the board."""
    before, after = (each.board[..., : spec.num_walkers] for each in (transition.now, transition.after))
    moves = np.asarray(jax.vmap(world.option_taken)(before, after))
    there, actions = np.asarray(np.asarray(before).any(axis=(1, 2))), np.asarray(transition.now.actions)
    walkers = range(there.shape[1])
    rows = [[(moves[there[:, i], i], actions[there[:, i], j]) for j in walkers] for i in walkers]
    return np.array([[_information(*pair) for pair in row] for row in rows])


def _information(one: Int[np.ndarray, " rows"], other: Int[np.ndarray, " rows"]) -> float:
    """The mutual information of two discrete samples, in nats."""
    counts = np.zeros((one.max(initial=0) + 1, other.max(initial=0) + 1))
    np.add.at(counts, (one, other), 1.0)
    if not counts.any():
        return 0.0
    joint = counts / counts.sum()
    return float(entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.ravel()))
