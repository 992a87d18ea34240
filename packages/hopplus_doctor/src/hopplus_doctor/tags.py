"""Which tag of a log is what? The mapping is guessed from names, shown, and can be edited as a TOML file:

[tags]
"charts/return/agent_0" = "return agent_0"
"losses/v_loss" = "value_loss"
"time/fps" = ""
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROLES: Mapping[str, str] = {
    "return": "the return of an episode, of a seat or the mean",
    "value_loss": "the critic's loss",
    "value_loss_real": "the critic's loss on real data",
    "value_loss_imagined": "the critic's loss on imagined data",
    "policy_loss": "the policy's loss",
    "entropy": "the policy's entropy",
    "approx_kl": "the distance of the policy from that before the update",
    "clip_fraction": "the share of samples whose ratio is clipped",
    "explained_variance": "the share of the targets' variance that the critic explains",
    "gradient_norm": "the norm of gradients before clipping",
    "updates": "the number of gradient steps so far, or in an update",
    "samples": "the number of samples so far, or in an update",
    "others_loss": "the opponent model's loss",
    "world_loss": "the world model's loss",
}
PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "value_loss_imagined",
        r"(value|critic|v)[_ /-]?loss.*(imagin|model|dream|fake)|(imagin|dream).*(value|critic)[_ /-]?loss",
    ),
    ("value_loss_real", r"(value|critic|v)[_ /-]?loss.*real|real.*(value|critic)[_ /-]?loss"),
    ("value_loss", r"\b(value|critic|v|vf|q)[_ -]?f?(unction)?[_ -]?loss|loss[_/ -](value|critic|vf|v)\b"),
    ("policy_loss", r"(policy|actor|pg|pi|policy_gradient)[_ -]?loss|loss[_/ -](policy|actor|pg|pi)\b"),
    ("others_loss", r"(moa|opponent|others?|co_?player).*(loss|nll|ce)\b"),
    ("world_loss", r"(wm|world|dynamics|transition).*loss"),
    ("entropy", r"entropy(?!.*(coef|weight))"),
    ("approx_kl", r"approx_?kl|\bkl\b|mean_kl"),
    ("clip_fraction", r"clip_?frac"),
    ("explained_variance", r"explained_?var|vf_explained"),
    ("gradient_norm", r"grad(ient)?_?norm"),
    ("updates", r"(count/updates|num_?updates|n_updates|gradient_steps)"),
    ("samples", r"(count/samples|num_?samples)"),
    ("return", r"(episod\w*_?(return|rew|reward)|ep_?rew(ard)?(_mean)?|return|\breward_mean|score)"),
)
"""The first pattern that fits a tag gives its role."""
EPISODE = r"episod|ep_?(rew|ret)"
SEAT = re.compile(r"(?:agent|player|seat|policy|learner)[_ -]?(\w*\d+|[a-z]\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Meaning:
    """What a tag is: a role, of a seat or of all together."""

    role: str
    seat: str | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.seat}" if self.seat else self.role


def guess(tags: Iterable[str]) -> dict[str, Meaning | None]:
    """The meaning of every tag by its name; None if the name says nothing.

    Where several tags may be the return of one seat, those of episodes are it: a reward of a step is not.
    """
    guessed = {tag: _guess(tag) for tag in sorted(tags)}
    returns = {tag: meaning for tag, meaning in guessed.items() if meaning and meaning.role == "return"}
    sure = {meaning for tag, meaning in returns.items() if re.search(EPISODE, tag, re.IGNORECASE)}
    doubtful = [tag for tag in returns if not re.search(EPISODE, tag, re.IGNORECASE) and returns[tag] in sure]
    return guessed | dict.fromkeys(doubtful)


def _guess(tag: str) -> Meaning | None:
    role = next((role for role, pattern in PATTERNS if re.search(pattern, tag, re.IGNORECASE)), None)
    if role is None or re.search(r"(std|min|max|median)(/|$)", tag, re.IGNORECASE):
        return None
    seat = SEAT.search(tag)
    return Meaning(role, re.sub(r"\s+", "_", seat[0]) if seat else None)


def read_mapping(path: Path, tags: Iterable[str]) -> dict[str, Meaning | None]:
    """The mapping of a TOML file. Tags that it does not name mean nothing."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f'{path} is no TOML: {error}; write [tags], and lines as "tag" = "return agent_0"') from None
    given = content.get("tags")
    if not isinstance(given, dict):
        raise ValueError(f'{path} has no [tags]; write [tags], and lines as "tag" = "return agent_0"')
    known, mapping = set(tags), dict.fromkeys(sorted(tags))
    for tag, words in given.items():
        if not isinstance(words, str):
            raise ValueError(f"{path}: {tag!r} is {words!r}; write a role in quotes, or an empty text")
        role, _, seat = words.strip().partition(" ")
        if role and role not in ROLES:
            raise ValueError(f"{path}: {tag!r} is {role!r}; the roles are {', '.join(ROLES)}")
        if tag not in known:
            raise ValueError(f"{path}: the logs have no tag {tag!r}; delete the line")
        mapping[tag] = Meaning(role, seat.strip() or None) if role else None
    return mapping


def to_toml(mapping: Mapping[str, Meaning | None]) -> str:
    """The mapping as a TOML file that can be edited."""
    roles = "\n".join(f"# {role}: {about}" for role, about in ROLES.items())
    lines = "\n".join(f"{json.dumps(tag)} = {json.dumps(str(meaning or ''))}" for tag, meaning in mapping.items())
    return (
        f'# What each tag is: "ROLE" or "ROLE SEAT"; an empty text for none. The roles:\n{roles}\n\n[tags]\n{lines}\n'
    )
