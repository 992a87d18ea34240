"""Has the run learned anything yet? Compares the return at the end of training with that of the first updates."""

from functools import partial

import numpy as np
from jaxtyping import Float64

from hopplus.runs.records import RETURN_TAG, Recorded, final_means, final_updates
from hopplus_doctor.answer import Finding, Picture
from hopplus_doctor.statistics import mean_of_known, seed_interval

FIRST_SHARE = 0.05
"""The share of training that counts as its beginning; at least one update."""
CHANGED = 0.1
"""The smallest change that counts, as a share of the larger of the two returns."""
THRESHOLD = f"fine if the change is {CHANGED:.0%} or more and its 95% interval over seeds leaves out 0"
LONGER = "train for longer, or with more seeds: --steps, --seeds"


def learned(recorded: Recorded) -> Finding:
    """Has the return changed, up or down? In a mixed-motive game learning may lower it. This raises no alarm."""
    about = partial(Finding, "progress", "policy", "judgement", threshold=THRESHOLD, more=LONGER)
    first, last = first_means(recorded), final_means(recorded, RETURN_TAG)
    known = np.isfinite(first) & np.isfinite(last)
    if final_updates(recorded).all() or not known.any():
        return about("not enough evidence", "the run is too short to compare its end with its beginning")
    first, last = first[known], last[known]
    samples = {"first updates": first.tolist(), "last fifth": last.tolist()}
    picture = Picture("boxes", "mean return by seed", tuple(samples), samples, "return")
    scale = max(abs(float(first.mean())), abs(float(last.mean())), 1e-9)
    effect = seed_interval((last - first) / scale)
    says = f"mean return {last.mean():.3g} over the last fifth of training, {first.mean():.3g} in the first updates"
    if 0.0 not in effect and abs(effect.estimate) >= CHANGED and np.isfinite([effect.low, effect.high]).all():
        return about("fine", says, effect, "of the return", picture=picture)
    why = "by its return the run has hardly learned anything yet"
    if len(first) < 2:
        why = "with one seed there is no interval"
    return about("not enough evidence", f"{says}: {why}", effect, "of the return", picture=picture)


def first_means(recorded: Recorded) -> Float64[np.ndarray, " seeds"]:
    """Each seed's mean return over the first updates that have one. Updates before the first episode ends have none."""
    returns = recorded.metrics[RETURN_TAG]
    begins = int(np.isfinite(returns).any(axis=1).argmax())
    num_updates = max(1, round(FIRST_SHARE * recorded.num_updates))
    return mean_of_known(returns[begins : begins + num_updates].T)
