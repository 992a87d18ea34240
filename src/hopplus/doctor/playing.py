"""Is what a seat learns from what it saw, did and was paid? One update's play is recorded, and worked out again here.

Nothing of the learner's own arithmetic is used for that: rewards come from the rules, targets from a loop over time.
All findings are exact: a right program has none of them, whatever it has learned.
"""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int, Key
from scipy.stats import entropy

from hopplus.doctor.answer import Finding, Picture
from hopplus.doctor.case import Case
from hopplus.doctor.influence import Influence
from hopplus.games.game import GameSpec, ego_order
from hopplus.learning.learner import Experience, LearnerState, by_seat, value_scale
from hopplus.models import actor_critic, world
from hopplus.models.world import Transition

TOLERANCE = 1e-3
"""Relative to the largest reward; what is computed twice in another order differs by less."""
CLEAR = 0.1
"""Nats by which another seat's action must explain a walker better, before actions are called misaligned."""


def streams(case: Case) -> Finding:
    """Whose random stream decides whose action? Change one seat's, and only that seat's first actions may change."""
    state = case.state(0)
    first = lambda state: np.asarray(case.play(state).steps.actions[:, 0])  # noqa: E731
    usual = first(state)
    num_agents = usual.shape[1]
    changed = np.zeros((num_agents, num_agents))
    for seat in range(num_agents):
        other = jax.random.fold_in(state.seat_keys[seat], 1)
        changed[seat] = np.mean(first(_with_key(state, seat, other)) != usual, axis=0)
    found = Influence(tuple(f"player_{seat + 1}" for seat in range(num_agents)), changed)
    picture = found.picture("share of first actions that change with a seat's random stream", "stream", "action")
    about = partial(Finding, "random streams", "random streams", picture=picture)
    if found.wrong.any():
        seat, victim, share = found.worst
        return about(
            "broken",
            f"a new random stream for {seat} changes {share:.0%} of the first actions of {victim}",
            next="look for a key that is used for several seats; split it by seat",
        )
    if not found.own.all():
        lazy = found.names[int(found.own.argmin())]
        return about("not enough evidence", f"no first action of {lazy} depends on chance, so its stream shows nowhere")
    least = found.own.min()
    return about("fine", f"each seat draws its own actions: {least:.0%} or more of them change with its own stream")


def _with_key(state: LearnerState, seat: int, key: Key[Array, ""]) -> LearnerState:
    data = jax.random.key_data(state.seat_keys).at[seat].set(jax.random.key_data(key))
    return replace(state, seat_keys=jax.random.wrap_key_data(data))


def samples(case: Case) -> Finding:
    """Does a seat learn from every step that it was in the game, and from no other?"""
    shares = np.zeros((len(case.lived), len(case.seats)))
    wrong = np.zeros_like(shares)
    for seed, lived in enumerate(case.lived):
        there, active = _there(case, lived), np.asarray(lived.batch.active)
        shares[seed] = active.sum((1, 2)) / np.maximum(there.sum((1, 2)), 1)
        wrong[seed] = (active != there).mean((1, 2))
    means = shares.mean(axis=0)
    title = "samples that a seat learns from, over the steps that it played"
    picture = Picture("bars", title, case.seats, {"samples over steps": means.tolist()})
    about = partial(Finding, "samples", "buffer", picture=picture)
    if wrong.max() > 0:
        seat = int(wrong.mean(axis=0).argmax())
        return about(
            "broken",
            f"{case.seats[seat]} learns from {means[seat]:.0%} of the steps that it played, the others from "
            f"{np.delete(means, seat).mean():.0%}",
            next="look at the mask of samples of that seat: is its buffer filled as often as the others'?",
        )
    return about("fine", "every seat learns from all steps that it played, and from none after it left")


def _there(case: Case, lived: Experience) -> Bool[np.ndarray, "seats envs time"]:
    """Whether a seat sees itself, for who has left sees nothing; where there is no board, whether play says so."""
    if not case.has_board:
        return _of_seats(case, lived.steps.in_game)
    planes, time = np.asarray(lived.batch.observation.planes), np.asarray(lived.batch.observation.time)
    return planes[..., 0].any(axis=(-1, -2)) & (time < 1)


def _of_seats(case: Case, recorded: Array) -> np.ndarray:
    """[envs, time, agents] -> [learning seats, envs, time]"""
    return np.moveaxis(np.asarray(recorded), 2, 0)[: len(case.seats)]


@cache
def targets(case: Case) -> list[Finding]:
    """Are rewards those of the rules, and targets those of the rewards?"""
    if case.learner.ppo.ranked_reward:
        return []
    scale = value_scale(case.task)
    recorded = [_of_seats(case, lived.steps.rewards) for lived in case.lived]
    wrong_rewards, wrong_targets = np.zeros((2, len(case.seats)))
    try:
        paid, source = _rewards_by_the_rules(case), "the rules"
    except NotImplementedError:  # then what was recorded is all that is known
        paid, source = recorded, "the recorded rewards"
    for lived, told, true in zip(case.lived, recorded, paid, strict=True):
        active = np.asarray(lived.batch.active)
        worked_out = _targets(case, lived, true)
        off = np.abs(np.asarray(lived.batch.targets) - worked_out) > TOLERANCE * scale
        wrong_rewards += (active & (np.abs(told - true) > TOLERANCE * scale)).sum((1, 2))
        wrong_targets += (active & off).sum((1, 2)) / active.sum((1, 2)).clip(1) / len(case.lived)
    words = "of the critic's targets of {seat} do not follow from its rewards"
    found = [_missed(case, "targets", source, wrong_targets, f"{wrong_targets.max():.0%} {words}")]
    if source == "the rules":
        words = f"{wrong_rewards.max():.0f} steps of {{seat}} hold another reward than the rules pay it"
        found.insert(0, _missed(case, "rewards", source, wrong_rewards, words))
    return found


def _missed(case: Case, check: str, source: str, missed: np.ndarray, words: str) -> Finding:
    picture = Picture("bars", f"{check} that are wrong, by seat", case.seats, {"wrong": missed.tolist()})
    about = partial(Finding, check, "rewards", picture=picture)
    if not missed.any():
        return about("fine", f"all {check} are what they must be, worked out again from {source}")
    return about(
        "broken",
        words.format(seat=case.seats[int(missed.argmax())]),
        next="look at where rewards are put in the buffer: does every seat get its own?",
    )


def _rewards_by_the_rules(case: Case) -> list[np.ndarray]:
    """What each seat's own view and everybody's actions are worth: for each seed, [seats, envs, time]."""
    game, order = case.game, jnp.asarray(ego_order(case.game.spec.num_agents)[: len(case.seats)])

    def one(view, actions):
        return game.step(game.from_view(view), actions, key=jax.random.key(0))[1][0]

    @jax.jit
    def of_seed(lived: Experience):
        actions = jnp.moveaxis(lived.steps.actions[..., order], 2, 0)
        return jax.vmap(jax.vmap(jax.vmap(one)))(lived.batch.observation, actions)

    return [np.asarray(of_seed(lived)) for lived in case.lived]


def _targets(case: Case, lived: Experience, rewards: np.ndarray) -> Float64[np.ndarray, "seats envs time"]:
    discount, gae_lambda = case.learner.ppo.discount, case.learner.ppo.gae_lambda
    values, ended = np.asarray(lived.batch.values, np.float64), _of_seats(case, lived.steps.terminated_after)
    next_value, advantage = np.asarray(lived.last_values, np.float64).T, np.zeros(values.shape[:2])
    found = np.zeros(values.shape)
    for step in reversed(range(values.shape[2])):
        goes_on = 1.0 - ended[..., step]
        surprise = rewards[..., step] + discount * goes_on * next_value - values[..., step]
        advantage = surprise + discount * gae_lambda * goes_on * advantage
        found[..., step] = values[..., step] + advantage
        next_value = values[..., step]
    return found


@cache
def goals(case: Case) -> Finding | None:
    """Are the goals in the record those that the seat acted on? Then they explain the values that it told."""
    sizes = np.zeros((len(case.lived), len(case.seats)))
    off = np.zeros_like(sizes)
    if case.lived[0].batch.goals.shape[-1] == 0:
        return None
    retell = jax.jit(jax.vmap(jax.vmap(lambda params, *seen: actor_critic.apply(params, *seen)[1], (None, 0, 0, 0))))
    for seed, lived in enumerate(case.lived):
        batch = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[0], -1, *leaf.shape[3:]), lived.batch)
        policies = by_seat(case.task, case.state(seed).params)
        values = np.asarray(retell(policies, batch.observation, batch.legal, batch.goals))
        active = np.asarray(batch.active)
        wrong = np.abs(values - np.asarray(batch.values)) > TOLERANCE * np.maximum(1.0, np.abs(values))
        off[seed] = (wrong & active).sum(1) / active.sum(1).clip(1)
        told = np.abs(np.asarray(batch.goals)).sum((-1, -2)) > 0
        sizes[seed] = (told & active).sum(1) / active.sum(1).clip(1)
    told, missed = sizes.mean(0), off.mean(0)
    title = "steps with goals in the record, and with values that those goals explain"
    picture = Picture("bars", title, case.seats, {"goals told": told.tolist(), "explained": (1 - missed).tolist()})
    about = partial(Finding, "goals in the record", "goals", picture=picture)
    if missed.max() > 0.01 or (told.min() == 0 < told.max()):
        seat = int(np.lexsort((-missed, told))[0])
        return about(
            "broken",
            f"{case.seats[seat]} has goals in {told[seat]:.0%} of its record, the others in "
            f"{np.delete(told, seat).mean():.0%}; {missed[seat]:.0%} of its values do not follow from them",
            next="look at where goals are logged: is it the vector that the policy read?",
        )
    return about("fine", "the goals in the record are those that the seats acted on")


@cache
def company(case: Case) -> Finding | None:
    """Do the models of others learn only from steps with both on the board?"""
    if case.lived[0].seen is None or not case.has_board:
        return None
    shares = []
    for lived in case.lived:
        assert lived.seen is not None and lived.seen.observation is not None
        planes = np.asarray(lived.seen.observation.planes)[..., : case.game.spec.num_walkers]
        there = np.asarray(planes.any(axis=(-2, -3)))
        both = there[..., :1] & there[..., 1:]
        valid = np.asarray(lived.seen.valid)
        shares.append((valid & ~both).sum((1, 2, 3)) / valid.sum((1, 2, 3)).clip(1))
    share = np.mean(shares, axis=0)
    title = "examples of co-players that had left the board"
    picture = Picture("bars", title, case.seats, {"share": share.tolist()})
    about = partial(Finding, "examples after leaving", "others: data", picture=picture)
    if share.max() > 0:
        return about(
            "broken",
            f"{share.max():.0%} of what the models of others learn from are steps after a player had left",
            next="mask the opponents' data by who is still in the game",
        )
    return about("fine", "no model of a co-player learns from steps after it left")


@cache
def alignment(case: Case) -> Finding | None:
    """Does each walker in a world's data move as its own action says? By mutual information, for each learner."""
    happened = [lived.happened for lived in case.lived if lived.happened is not None]
    if not happened:
        return None
    spec = case.game.spec
    order = jnp.asarray(ego_order(spec.num_agents), jnp.int32)
    means, lead = np.zeros((spec.num_agents, spec.num_agents)), np.inf
    blamed = ""
    for rows in happened:
        for seat, name in enumerate(case.seats):
            told = _explained(spec, world.seen_by(spec, rows, order[seat]))
            means += told / (len(happened) * len(case.seats))
            others = np.where(np.eye(len(told), dtype=bool), -np.inf, told).max(axis=1)
            if np.min(np.diag(told) - others) < lead:
                lead, blamed = float(np.min(np.diag(told) - others)), name
    places = [f"walker {place + 1}" for place in range(spec.num_agents)]
    columns = {f"action {place + 1}": means[:, place].tolist() for place in range(spec.num_agents)}
    title = "how much each action tells of each walker, in the order of the learner"
    picture = Picture("matrix", title, tuple(places), columns, unit="nats")
    about = partial(Finding, "planes and actions", "world: data", picture=picture)
    if lead < -CLEAR:
        return about(
            "broken",
            f"in what the world of {blamed} learns from, another seat's action tells {-lead:.2f} nats more of where a "
            "walker goes than its own",
            next="look at the order of seats in the world's data: planes and actions must be turned alike",
        )
    return about("fine", "every walker moves as its own action says, in every learner's order")


def _explained(spec: GameSpec, happened: Transition) -> Float64[np.ndarray, "walkers actions"]:
    """Mutual information of what became of walker i and what seat j did, over steps with walker i on the board."""
    before, after = (each.board[..., : spec.num_walkers] for each in (happened.now, happened.after))
    became = np.asarray(jax.vmap(world.what_became)(before, after))
    there, actions = np.asarray(np.asarray(before).any(axis=(1, 2))), np.asarray(happened.now.actions)
    walkers = range(there.shape[1])
    rows = [[(became[there[:, i], i], actions[there[:, i], j]) for j in walkers] for i in walkers]
    return np.array([[_information(*pair) for pair in row] for row in rows])


def _information(one: Int[np.ndarray, " rows"], other: Int[np.ndarray, " rows"]) -> float:
    table = np.zeros((one.max(initial=0) + 1, other.max(initial=0) + 1))
    np.add.at(table, (one, other), 1.0)
    if not table.any():
        return 0.0
    joint = table / table.sum()
    return float(entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.ravel()))
