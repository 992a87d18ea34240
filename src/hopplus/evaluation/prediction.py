"""Scores of a model that predicts other players' actions, beside three yardsticks on the same samples.

The yardsticks: the marginal action frequencies, "repeats its last action", and the ceiling, the Bayes-optimal
prediction. With b the true distribution given all that the predictor may know, and p what the model predicted,

    top1_expected = mean b[argmax p],    ceiling = mean max b,    ceiling's cross-entropy = mean -sum b log b

The first two do not depend on the noise of the sampled actions, so their ratio is the share of the predictable that is
predicted. If a model finds two actions equally likely, the first of them counts as its decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

LEAST_PROBABILITY = 1e-8
"""Predictions are clipped here, so that an action predicted as impossible costs 18.4 nats and not infinity."""
NUM_BINS = 15
"""Bins of the calibration, equally wide."""
NUM_PHASES, NUM_FINE_PHASES = 3, 10
EQUAL = 1e-6
"""Probabilities this close to one another are a tie in the best prediction, and times this close are the same."""
SUM_ERROR = 1e-3
NO_LAST_ACTION = -1


@dataclass(frozen=True)
class Predictions:
    """Predictions about co-players, sample by sample, and the actions they took."""

    probabilities: Float[np.ndarray, "samples actions"]
    """The model's prediction."""
    actions: Int[np.ndarray, " samples"]
    """The action taken."""
    best: Float[np.ndarray, "samples actions"] | None
    """The true distribution given all that the predictor may know; None if it cannot be computed."""
    last_actions: Int[np.ndarray, " samples"]
    """The action of that player in the step before; -1 at the start of an episode."""
    kinds: Int[np.ndarray, " samples"]
    """The co-player's type, an index of `kind_names`."""
    kind_names: tuple[str, ...]
    times: Float[np.ndarray, " samples"]
    """The share of the horizon that has passed, in [0, 1)."""
    marginal: Float[np.ndarray, " actions"] | None = None
    """Action frequencies of the training data; None: those of the samples themselves."""

    def __post_init__(self) -> None:
        num_samples, num_actions = self.probabilities.shape
        _check_distributions("probabilities", self.probabilities)
        if self.best is not None:
            _check_distributions("best", self.best)
            if self.best.shape != self.probabilities.shape:
                raise ValueError(
                    f"best is {self.best.shape}, probabilities {self.probabilities.shape}; give both alike"
                )
        for name in ("actions", "last_actions", "kinds", "times"):
            if len(getattr(self, name)) != num_samples:
                raise ValueError(f"{len(getattr(self, name))} {name} for {num_samples} samples; give one per sample")
        _check_range("actions", self.actions, 0, num_actions)
        _check_range("last_actions", self.last_actions, NO_LAST_ACTION, num_actions)
        _check_range("kinds", self.kinds, 0, len(self.kind_names))
        _check_range("times", self.times, 0, 1)
        if self.marginal is not None and (len(self.marginal) != num_actions or not self.marginal.sum() > 0):
            raise ValueError(f"the marginal must hold the frequencies of {num_actions} actions, not all of them 0")


def score(predictions: Predictions, action_names: Sequence[str]) -> dict[str, Any]:
    """Every figure about the predictions, ready for JSON; None stands for an undefined figure, such as 0 of 0."""
    num_actions = predictions.probabilities.shape[1]
    if len(action_names) != num_actions:
        raise ValueError(f"{len(action_names)} names for {num_actions} actions; give one name per action")
    probabilities = predictions.probabilities.astype(np.float64)
    best = None if predictions.best is None else predictions.best.astype(np.float64)
    decisions = probabilities.argmax(axis=1)
    columns = _columns(probabilities, predictions.actions, best)
    everything = _means(columns, np.ones(len(decisions), bool))
    counts, mean_probabilities = _confusion(probabilities, decisions, predictions.actions)
    return {
        **{name: everything[name] for name in ("samples", "top1", "top1_expected", "top1_over_ceiling")},
        "top3": _mean(_in_top(probabilities, predictions.actions, 3)),
        **{name: everything[name] for name in ("cross_entropy", "cross_entropy_expected")},
        "yardsticks": _yardsticks(predictions, best),
        "actions": _by_action(action_names, counts, probabilities, predictions.actions, best),
        "confusion": counts.tolist(),
        "mean_probabilities": _rows_or_none(mean_probabilities),
        "calibration": _calibration(probabilities.max(axis=1, initial=0.0), columns["top1"]),
        "by_kind": _by_kind(columns, predictions),
        "by_phase": _by_phase(columns, predictions.times, NUM_PHASES),
        "by_tenth": _by_phase(columns, predictions.times, NUM_FINE_PHASES),
    }


def actions_and_confusion(
    action_names: Sequence[str],
    probabilities: Float[np.ndarray, "samples actions"],
    actions: Int[np.ndarray, " samples"],
) -> tuple[list[dict[str, Any]], Int[np.ndarray, "actions actions"]]:
    """Precision, recall and F1 of each action, and counts [taken, decided]."""
    probabilities = probabilities.astype(np.float64)
    counts, _ = _confusion(probabilities, probabilities.argmax(axis=1), actions)
    return _by_action(action_names, counts, probabilities, actions, None), counts


def _check_distributions(name: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all() or (values < 0).any() or (abs(values.sum(axis=1) - 1) > SUM_ERROR).any():
        raise ValueError(f"a row of {name} is no distribution; give probabilities that sum to 1, not logits")


def _check_range(name: str, values: np.ndarray, low: int, end: int) -> None:
    if not ((values >= low) & (values < end)).all():
        raise ValueError(f"{name} must be at least {low} and below {end}; leave out the samples that are not")


def _columns(
    probabilities: Float64[np.ndarray, "samples actions"],
    actions: Int[np.ndarray, " samples"],
    best: Float64[np.ndarray, "samples actions"] | None,
) -> dict[str, Float64[np.ndarray, " samples"]]:
    """The figures of each sample whose means are reported."""
    samples, decisions = np.arange(len(actions)), probabilities.argmax(axis=1)
    surprise = -np.log(np.maximum(probabilities, LEAST_PROBABILITY))
    columns = {"top1": (decisions == actions).astype(np.float64), "cross_entropy": surprise[samples, actions]}
    if best is not None:
        columns["top1_expected"] = best[samples, decisions]
        columns["cross_entropy_expected"] = (best * surprise).sum(axis=1)
        columns["ceiling"] = best.max(axis=1)
    return columns


def _means(columns: dict[str, np.ndarray], chosen: Bool[np.ndarray, " samples"]) -> dict[str, Any]:
    """The mean figures of the chosen samples."""
    names = ("top1", "cross_entropy", "top1_expected", "cross_entropy_expected", "ceiling")
    means = {name: _mean(columns[name][chosen]) if name in columns else None for name in names}
    return {
        "samples": int(chosen.sum()),
        **means,
        "top1_over_ceiling": _ratio(means["top1_expected"], means["ceiling"]),
    }


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean(dtype=np.float64)) if len(values) else None


def _ratio(part: int | float | None, whole: int | float | None) -> float | None:
    return None if part is None or not whole else float(part / whole)


def _in_top(
    probabilities: Float64[np.ndarray, "samples actions"], actions: Int[np.ndarray, " samples"], most: int
) -> Bool[np.ndarray, " samples"]:
    """Whether the action was among the most likely ones; of equally likely ones, the first come first."""
    likely = np.argsort(-probabilities, axis=1, kind="stable")[:, :most]
    return (likely == actions[:, None]).any(axis=1)


def _yardsticks(predictions: Predictions, best: Float64[np.ndarray, "samples actions"] | None) -> dict[str, Any]:
    actions, last_actions = predictions.actions, predictions.last_actions
    marginal = _marginal(predictions)
    likely = np.broadcast_to(marginal, predictions.probabilities.shape)
    repeated = np.where(last_actions == NO_LAST_ACTION, marginal.argmax(), last_actions)
    return {
        "marginal": {
            "top1": _mean(_in_top(likely, actions, 1)),
            "top3": _mean(_in_top(likely, actions, 3)),
            "cross_entropy": _mean(-np.log(np.maximum(marginal[actions], LEAST_PROBABILITY))),
        },
        "last_action": {"top1": _mean(repeated == actions)},
        "ceiling": None if best is None else _ceiling(best),
    }


def _marginal(predictions: Predictions) -> Float64[np.ndarray, " actions"]:
    if predictions.marginal is not None:
        return predictions.marginal / predictions.marginal.sum(dtype=np.float64)
    counts = np.bincount(predictions.actions, minlength=predictions.probabilities.shape[1])
    return counts / max(1, len(predictions.actions))


def _ceiling(best: Float64[np.ndarray, "samples actions"]) -> dict[str, float | None]:
    """The expected figures of the best predictor: ties do not matter, and its cross-entropy is the entropy."""
    surprise = -np.log(np.where(best > 0, best, 1.0))
    return {
        "top1": _mean(best.max(axis=1)),
        "top3": _mean(np.sort(best, axis=1)[:, -3:].sum(axis=1)),
        "cross_entropy": _mean((best * surprise).sum(axis=1)),
    }


def _confusion(
    probabilities: Float64[np.ndarray, "samples actions"],
    decisions: Int[np.ndarray, " samples"],
    actions: Int[np.ndarray, " samples"],
) -> tuple[Int[np.ndarray, "actions actions"], Float64[np.ndarray, "actions actions"]]:
    """Counts [taken, decided], and mean probabilities [taken, action]; NaN for an action that was never taken."""
    num_actions = probabilities.shape[1]
    counts = np.zeros((num_actions, num_actions), np.int64)
    np.add.at(counts, (actions, decisions), 1)
    totals = np.zeros((num_actions, num_actions))
    np.add.at(totals, actions, probabilities)
    support = counts.sum(axis=1, keepdims=True)
    return counts, np.divide(totals, support, out=np.full_like(totals, np.nan), where=support > 0)


def _rows_or_none(matrix: Float64[np.ndarray, "rows columns"]) -> list[list[float] | None]:
    return [row.tolist() if np.isfinite(row).all() else None for row in matrix]


def _by_action(
    names: Sequence[str],
    counts: Int[np.ndarray, "actions actions"],
    probabilities: Float64[np.ndarray, "samples actions"],
    actions: Int[np.ndarray, " samples"],
    best: Float64[np.ndarray, "samples actions"] | None,
) -> list[dict[str, Any]]:
    """The figures of each action. F1 is 0, not None, for an action that was only taken or only predicted."""
    num_samples = len(actions)
    best_recall = [None] * len(names) if best is None else _best_recall(actions, best)
    rows = []
    for index, name in enumerate(names):
        right, support, predicted = int(counts[index, index]), int(counts[index].sum()), int(counts[:, index].sum())
        rows.append(
            {
                "name": name,
                "support": support,
                "share": _ratio(support, num_samples),
                "predicted_share": _ratio(predicted, num_samples),
                "mean_probability": _mean(probabilities[:, index]),
                "precision": _ratio(right, predicted),
                "recall": _ratio(right, support),
                "f1": _ratio(2 * right, support + predicted),
                "recall_ceiling": best_recall[index],
            }
        )
    return rows


def _best_recall(
    actions: Int[np.ndarray, " samples"], best: Float64[np.ndarray, "samples actions"]
) -> list[float | None]:
    """The recall of the predictor argmax(best) that breaks ties at random.

    Scripts often find two steps equally good; always taking the first would make "up" look easy and "right" hard. This
    is no bound for a single action: a model may favour one action at the cost of another.
    """
    tied = best >= best.max(axis=1, keepdims=True) - EQUAL
    credit = (tied / tied.sum(axis=1, keepdims=True))[np.arange(len(actions)), actions]
    return [_mean(credit[actions == index]) for index in range(best.shape[1])]


def _calibration(confidence: Float64[np.ndarray, " samples"], right: Float64[np.ndarray, " samples"]) -> dict[str, Any]:
    """The calibration of the top label: confidence and accuracy in bins of low < confidence <= high."""
    edges = np.linspace(0.0, 1.0, NUM_BINS + 1)
    index = np.clip(np.digitize(confidence, edges, right=True) - 1, 0, NUM_BINS - 1)
    bins = [
        {
            "low": float(edges[each]),
            "high": float(edges[each + 1]),
            "confidence": _mean(confidence[index == each]),
            "accuracy": _mean(right[index == each]),
            "count": int((index == each).sum()),
        }
        for each in range(NUM_BINS)
    ]
    gaps = [each["count"] * abs(each["confidence"] - each["accuracy"]) for each in bins if each["count"]]
    return {"ece": _ratio(float(sum(gaps)), len(right)), "bins": bins}


def _by_kind(columns: dict[str, np.ndarray], predictions: Predictions) -> dict[str, Any]:
    return {name: _means(columns, predictions.kinds == kind) for kind, name in enumerate(predictions.kind_names)}


def _by_phase(columns: dict[str, np.ndarray], times: np.ndarray, num_phases: int) -> list[dict[str, Any]]:
    """The figures in equally long parts of the horizon; a time on the border belongs to the later part."""
    phases = np.minimum(np.floor(times.astype(np.float64) * num_phases + EQUAL), num_phases - 1)
    return [
        {"low": phase / num_phases, "high": (phase + 1) / num_phases, **_means(columns, phases == phase)}
        for phase in range(num_phases)
    ]
