"""Pictures of findings of the doctor, in the two investigations that docs/why_*.md tell about."""

from textwrap import fill

from matplotlib.figure import Figure

from hopplus_doctor import evidence
from hopplus_doctor.answer import Picture
from picture_parts.common import NotMeasuredError, results

LABELS = {
    ("player_1", "returns"): ("seat of the run", "mean return"),
    ("player_1", "policies in other seats"): ("seat that it plays", "policy"),
    ("value_loss", "value loss"): ("data; a point is a seed", "value loss"),
    ("value_loss", "attribution"): ("what is replaced by the truth", "share of the squared error"),
}
"""Of each investigation and check: the labels of the axes."""


def finding(name: str, check: str) -> Figure:
    """The picture of a finding, with a title and with labels, which a page of the doctor writes as text."""
    try:
        found = results(f"investigation_{name}")["examination"]
    except NotMeasuredError as error:
        raise NotMeasuredError(f"{error}; docs/why_{name}.md has the commands, whose doctor.json goes there") from None
    pictures = {one["check"]: one["picture"] for answer in found["answers"] for one in answer["findings"]}
    picture = Picture(**pictures[check])
    sheet = evidence.WAYS[picture.kind](picture)
    (axes,) = sheet.axes
    axes.set_xlabel(LABELS[name, check][0])
    axes.set_ylabel(LABELS[name, check][1])
    if picture.kind == "bars" and len(picture.series) > 1:
        axes.legend(axes.containers[: len(picture.series)], list(picture.series), fontsize=8, frameon=False)
    sheet.suptitle(fill(picture.title, 60), fontsize=9)
    return sheet


def player_1_returns() -> Figure:
    return finding("player_1", "returns")


def player_1_policies() -> Figure:
    return finding("player_1", "policies in other seats")


def value_loss_sources() -> Figure:
    return finding("value_loss", "value loss")


def value_loss_attribution() -> Figure:
    return finding("value_loss", "attribution")
