"""Are the models of co-players and of the world trained on the right data, and do they predict?

What concerns the data is exact. How well a model predicts is a judgement.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from hopplus_doctor.answer import Finding, Picture, Verdict
from hopplus_doctor.ask import absent, by_seat, in_game, judged_equal, scale, share_words, unanswered
from hopplus_doctor.recording import Recording

OTHERS_ASK = "are the opponent models trained on what co-players did, and do they predict?"
WORLD_ASK = "does the world model predict what comes?"
WORSE, MUCH_WORSE = 0.02, 0.2
"""Nats by which an opponent model is worse than the marginal frequencies of actions: suspicious, broken."""
LEARNABLE = 0.02
"""Nats below the entropy of the marginals that a table of last actions reaches: then there is something to predict."""
UNSURE, WRONG = 0.15, 0.4
"""Expected calibration errors: suspicious, broken."""
COMMON = 0.05
"""Actions with this share are asked for."""
FORGOTTEN, LOST = 0.25, 0.05
"""Mean probability of an action where it was taken, over its frequency: suspicious below, broken below."""
LEAST_EXAMPLES = 200
OUTSIDE = 0.25
"""An entry is impossible if it lies outside of what came by more than this share of its range."""
FEW, MANY = 0.02, 0.2
"""Shares of impossible entries: suspicious, broken."""
POOR, USELESS = 0.5, 0.0
"""Shares of the variance that predictions explain: suspicious below, broken below."""
LEAST_ENDS = 5


def others(recording: Recording) -> Iterator[Finding]:
    """Findings about the opponent models."""
    if not recording.groups.get("others"):
        words = "no predictions of co-players are recorded; not every agent has an opponent model"
        yield unanswered("predicted actions", "others", "judgement", "others", ["probabilities", "actions"], words)
        return
    yield padded(recording)
    yield labels(recording)
    names = ("probabilities", "actions")
    predicted, actions = (recording.get("others", name) for name in names)
    if predicted is None or actions is None:
        yield unanswered("predicted actions", "others", "judgement", "others", absent(recording, "others", *names))
        return
    counted = np.isfinite(predicted).all(-1) & (actions >= 0) & (actions < predicted.shape[-1])
    for name in ("in_game", "learned"):
        if (mask := recording.get("others", name)) is not None:
            counted = counted & mask
    off = np.abs(np.nan_to_num(predicted).sum(-1) - 1) > 0.01
    yield judged_equal(
        recording,
        "probabilities of co-players",
        "others",
        by_seat(off, counted),
        wrong="{share} of the predictions of {seat} do not add up to 1",
        right="all predictions are distributions",
        advice="record probabilities, after the softmax",
    )
    if counted.sum() < LEAST_EXAMPLES:
        says = f"{counted.sum()} predictions are too few; {LEAST_EXAMPLES} are needed"
        yield Finding(
            "predicted actions", "others", "judgement", "not enough evidence", says, threshold="none: too few"
        )
        return
    yield marginals(recording, predicted, actions, counted)
    yield recall(predicted, actions, counted)
    yield calibration(predicted[counted], actions[counted])


def padded(recording: Recording) -> Finding:
    """Are examples of co-players that had left kept out?"""
    check, module = "examples after leaving", "others: data"
    learned, there = recording.get("others", "learned"), recording.get("others", "in_game")
    if learned is None or there is None:
        return unanswered(check, module, "exact", "others", absent(recording, "others", "learned", "in_game"))
    return judged_equal(
        recording,
        check,
        module,
        by_seat(learned & ~there, learned),
        wrong="{share} of the examples of {seat}'s opponent model are padding: the co-player had left",
        right="no opponent model learns from steps after a co-player left",
        advice="mask the opponent model's loss by the co-players that are still in the game",
    )


def labels(recording: Recording) -> Finding:
    """Are the actions that the opponent model is trained on those that its co-player took in that step?"""
    check, module = "labels of co-players", "others: data"
    actions, given = recording.get("real", "actions"), recording.get("others", "actions")
    order, num_seats = recording.settings.others_order, len(recording.seats)
    fits = actions is not None and given is not None and given.shape[:4] == actions.shape
    if not fits or order is None or given is None or actions is None or given.shape[-1] != num_seats - 1:
        words = "real/actions and others/actions of the same steps, and Recorder(others_order=...), are needed"
        return unanswered(check, module, "exact", "others", [], words)
    learned = recording.get("others", "learned")
    there = recording.get("others", "in_game")
    counted = np.ones(given.shape, bool) if learned is None else learned.copy()
    counted = counted if there is None else counted & there
    true, played = np.empty_like(given), in_game(recording, "real", actions.shape)
    for seat in range(num_seats):
        if order == "ego":
            row = [(seat + ahead) % num_seats for ahead in range(1, num_seats)]
        else:
            row = [other for other in range(num_seats) if other != seat]
        true[:, seat] = np.moveaxis(actions[:, row], 1, -1)
        counted[:, seat] &= np.moveaxis(played[:, row], 1, -1) & played[:, seat][..., None]
    wrong, hint = given != true, ""
    if (wrong & counted).any():
        moved = {
            "the actions of the step before": np.concatenate([true[..., :1, :], true[..., :-1, :]], -2),
            "the actions of the step after": np.concatenate([true[..., 1:, :], true[..., -1:, :]], -2),
            "the actions of co-players in another order": true[..., ::-1],
            "its own actions": np.broadcast_to(actions[..., None], true.shape),
        }
        bad = (wrong & counted).any((0, 2, 3, 4))
        close = {words: ((given != other) & counted)[:, bad][..., 1:-1, :].mean() for words, other in moved.items()}
        words = min(close, key=close.__getitem__)
        hint = f": they are {words}" if close[words] < 0.002 else ""
    return judged_equal(
        recording,
        check,
        module,
        by_seat(wrong, counted),
        wrong=f"{{share}} of the labels of {{seat}}'s opponent model are not what the co-player did{hint}",
        right="every label is the action that the co-player took",
        advice="check the order of seats, and of steps, where the opponent data is written",
    )


def marginals(recording: Recording, predicted: np.ndarray, actions: np.ndarray, counted: np.ndarray) -> Finding:
    """Is the cross-entropy below that of the frequencies of each co-player's actions?"""
    chosen = np.take_along_axis(predicted, np.where(counted, actions, 0)[..., None], -1)[..., 0]
    model, floor, known = np.full((3, len(recording.seats)), np.nan)
    for seat in range(len(recording.seats)):
        mask = counted[:, seat]
        if not mask.any():
            continue
        model[seat] = -np.log(np.maximum(chosen[:, seat][mask], 1e-6)).mean()
        entropy, reach = _marginal(actions[:, seat], mask, predicted.shape[-1])
        floor[seat], known[seat] = entropy, reach
    gain = floor - model
    series = {"opponent model": model.tolist(), "frequencies of actions": floor.tolist()}
    picture = Picture("bars", "cross-entropy of co-players' actions", recording.seats, series, "nats")
    threshold = (
        f"suspicious {WORSE:g} nats above the frequencies, or no better where a table of last actions is; "
        f"broken {MUCH_WORSE:g} nats above"
    )
    about = partial(Finding, "better than frequencies", "others", "judgement", threshold=threshold, picture=picture)
    if np.isnan(gain).all():
        return about("not enough evidence", "no seat has examples")
    seat = int(np.nanargmin(gain))
    says = (
        f"cross-entropy of {recording.seats[seat]}'s opponent model {model[seat]:.3f}, of frequencies {floor[seat]:.3f}"
    )
    advice = "look at the opponent model's inputs: does it see the co-player, and the step before?"
    verdict: Verdict = "broken" if gain[seat] < -MUCH_WORSE else "suspicious" if gain[seat] < -WORSE else "fine"
    if verdict == "fine" and gain[seat] < WORSE and floor[seat] - known[seat] > 5 * LEARNABLE:
        says += f"; a table of the co-player's last actions has {known[seat]:.3f}"
        verdict = "suspicious"
    return about(verdict, says, next=advice)


def _marginal(actions: np.ndarray, mask: np.ndarray, num_actions: int) -> tuple[float, float]:
    """The mean entropy of each co-player's frequencies, and the cross-entropy of a table of its last action."""
    entropies, tables, weights = [], [], []
    for other in range(actions.shape[-1]):
        of, there = actions[..., other], mask[..., other]
        if not there.any():
            continue
        shares = np.bincount(of[there], minlength=num_actions) / there.sum()
        entropies.append(-np.sum(shares * np.log(np.maximum(shares, 1e-12))))
        both = there[..., 1:] & there[..., :-1]
        pairs = np.ones((num_actions, num_actions)) * 0.5
        np.add.at(pairs, (of[..., :-1][both], of[..., 1:][both]), 1)
        tables.append(-np.sum((pairs / pairs.sum()) * np.log(pairs / pairs.sum(1, keepdims=True))))
        weights.append(there.sum())
    return float(np.average(entropies, weights=weights)), float(np.average(tables, weights=weights))


def recall(predicted: np.ndarray, actions: np.ndarray, counted: np.ndarray) -> Finding:
    """Does every common action get its share of probability where it is taken?"""
    flat, taken = predicted[counted], actions[counted]
    shares = np.bincount(taken, minlength=flat.shape[-1]) / len(taken)
    common = [action for action in range(flat.shape[-1]) if shares[action] >= COMMON]
    threshold = f"suspicious below {FORGOTTEN:g}, broken below {LOST:g}, for actions of {COMMON:.0%} or more"
    about = partial(Finding, "recall of actions", "others", "judgement", threshold=threshold)
    if not common:
        return about("not enough evidence", f"no action is taken in {COMMON:.0%} of the steps or more")
    held = {action: float(flat[taken == action, action].mean() / shares[action]) for action in common}
    labels_ = tuple(f"action {action}" for action in common)
    picture = Picture(
        "bars",
        "probability of an action where it was taken, over its frequency",
        labels_,
        {"ratio": list(held.values())},
    )
    worst = min(common, key=held.__getitem__)
    says = f"where action {worst} ({shares[worst]:.0%}) is taken, it has {held[worst]:.2f} times its frequency"
    verdict: Verdict = "broken" if held[worst] < LOST else "suspicious" if held[worst] < FORGOTTEN else "fine"
    return about(verdict, says, next="look at the opponent data: is the action in it, with its label?", picture=picture)


def calibration(predicted: np.ndarray, actions: np.ndarray) -> Finding:
    """Are predictions right as often as their probability says?"""
    sure, right = predicted.max(-1), predicted.argmax(-1) == actions
    place = np.minimum((sure * 10).astype(int), 9)
    used = [each for each in range(10) if (place == each).any()]
    said, true = (np.array([of[place == each].mean() for each in used]) for of in (sure, right))
    weight = np.array([(place == each).mean() for each in used])
    error = float(np.sum(weight * np.abs(said - true)))
    picture = Picture(
        "lines",
        "accuracy by probability",
        tuple(f"{each:.2f}" for each in said),
        {"accuracy": true.tolist(), "probability": said.tolist()},
    )
    verdict: Verdict = "broken" if error > WRONG else "suspicious" if error > UNSURE else "fine"
    threshold = f"suspicious above {UNSURE:g}, broken above {WRONG:g}"
    about = partial(Finding, "calibration", "others", "judgement", threshold=threshold, picture=picture)
    return about(
        verdict, f"expected calibration error {error:.3f}", next="train the opponent model for longer, or regularise it"
    )


def world(recording: Recording) -> Iterator[Finding]:
    """Findings about the world model."""
    if not recording.groups.get("world"):
        words = "no predictions of a world model are recorded; not every agent has one"
        yield unanswered(
            "predicted observations", "world", "judgement", "world", ["predicted_observations", "observations"], words
        )
        return
    valid = recording.get("world", "valid")
    for name, part in (("observations", "world: observations"), ("rewards", "world: rewards")):
        predicted, came = recording.get("world", f"predicted_{name}"), recording.get("world", name)
        if predicted is None or came is None:
            yield unanswered(
                f"predicted {name}", part, "judgement", "world", absent(recording, "world", f"predicted_{name}", name)
            )
            continue
        counted = np.ones(came.shape[:4], bool) if valid is None else valid
        if not counted.any():
            says, threshold = f"world/valid leaves out every one of the predicted {name}", "none: no step is valid"
            advice = "record steps that came before the episode ended"
            yield Finding(
                f"predicted {name}", part, "judgement", "not enough evidence", says, next=advice, threshold=threshold
            )
            continue
        if not np.isfinite(predicted[counted]).all():
            says = f"predicted {name} are not finite"
            yield Finding(
                f"predicted {name}", part, "exact", "broken", says, next="look at the world's loss and learning rate"
            )
            continue
        if name == "observations":
            yield impossible(predicted, came, counted)
        yield explained(name, part, predicted, came, counted)
    yield ends(recording, valid)


def impossible(predicted: np.ndarray, came: np.ndarray, counted: np.ndarray) -> Finding:
    """Do predicted observations lie in the range of what came?"""
    real = came[counted]
    low, high = real.min(0), real.max(0)
    room = OUTSIDE * np.maximum(high - low, 1e-3 * scale(real))
    outside = (predicted < low - room) | (predicted > high + room)
    steps = [
        float(outside[..., ahead, :][counted[..., ahead]].mean()) if counted[..., ahead].any() else np.nan
        for ahead in range(outside.shape[3])
    ]
    picture = Picture(
        "lines", "impossible entries, by steps ahead", tuple(str(s + 1) for s in range(len(steps))), {"share": steps}
    )
    share = float(outside[counted].mean())
    threshold = f"suspicious above {FEW:.0%}, broken above {MANY:.0%}; impossible: {OUTSIDE:.0%} beyond what came"
    verdict: Verdict = "broken" if share > MANY else "suspicious" if share > FEW else "fine"
    about = partial(
        Finding, "impossible observations", "world: observations", "judgement", threshold=threshold, picture=picture
    )
    return about(
        verdict,
        f"{share_words(share)} of the predicted entries are impossible",
        next="predict distributions, or clip what is predicted to the range",
    )


def explained(name: str, part: str, predicted: np.ndarray, came: np.ndarray, counted: np.ndarray) -> Finding:
    """How much of the variance do predictions explain, one step ahead and more?"""
    shares = []
    for ahead in range(came.shape[3]):
        mask = counted[..., ahead]
        one, other = predicted[:, :, :, ahead][mask], came[:, :, :, ahead][mask]
        spread = float(((other - other.mean(0)) ** 2).sum()) if len(other) > 1 else 0.0
        shares.append(1 - float(((one - other) ** 2).sum()) / spread if spread > 1e-9 else np.nan)
    labels_ = tuple(str(ahead + 1) for ahead in range(len(shares)))
    picture = Picture("lines", f"variance of {name} that is explained, by steps ahead", labels_, {"share": shares})
    threshold = (
        f"suspicious below {POOR:.0%}, broken below {USELESS:.0%}, one step ahead; suspicious below {USELESS:.0%} later"
    )
    about = partial(Finding, f"predicted {name}", part, "judgement", threshold=threshold, picture=picture)
    first = shares[0]
    if not np.isfinite(first):
        return about("not enough evidence", f"the {name} that came do not vary, so nothing is explained")
    says = f"predicted {name} explain {first:.0%} of the variance one step ahead"
    later = [share for share in shares[1:] if np.isfinite(share)]
    if later:
        says += f", {later[-1]:.0%} {len(shares)} steps ahead"
    verdict: Verdict = (
        "broken" if first < USELESS else "suspicious" if first < POOR or min(later, default=1.0) < USELESS else "fine"
    )
    advice = f"train the world for longer; check that {name} and actions are of the same step and seat order"
    if name == "rewards" and verdict != "fine":
        one, other = predicted[counted], came[counted]
        if len(one) > 2 and one.std() > 1e-6 and (fit := np.corrcoef(one, other)[0, 1]) > 0.8:
            factor = one.std() / max(other.std(), 1e-9)
            says += f"; they are right up to a factor of {factor:.2f} (correlation {fit:.2f})"
    return about(verdict, says, next=advice)


def ends(recording: Recording, valid: np.ndarray | None) -> Finding:
    """Are ends of episodes predicted where they come?"""
    check, part = "predicted ends", "world: ends"
    predicted, came = recording.get("world", "predicted_ends"), recording.get("world", "ends")
    threshold = "by their mean probability: suspicious below 0.3, broken below 0.1, or if predicted 5 times too often"
    if predicted is None or came is None:
        return unanswered(check, part, "judgement", "world", absent(recording, "world", "predicted_ends", "ends"))
    counted = np.ones(came.shape, bool) if valid is None else valid
    about = partial(Finding, check, part, "judgement", threshold=threshold)
    if (came & counted).sum() < LEAST_ENDS:
        return about(
            "not enough evidence",
            f"{(came & counted).sum()} ends came; {LEAST_ENDS} are needed",
            next="record more envs or updates",
        )
    found = float(np.clip(np.nan_to_num(predicted[came & counted]), 0, 1).mean())
    rate, true = float(np.nan_to_num(predicted[counted]).mean()), float(came[counted].mean())
    says = f"where episodes end, the mean probability is {found:.2f}; {true:.1%} of the steps end, {rate:.1%} predicted"
    verdict: Verdict = "broken" if found < 0.1 or rate > 5 * true else "suspicious" if found < 0.3 else "fine"
    return about(
        verdict, says, next="check the loss of the head that predicts ends: rare ends need no weight, but a label"
    )
