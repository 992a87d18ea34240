"""Things that a user brings: MODULE:FACTORY names something that can be imported, also from the working folder."""

import inspect
import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hopplus_doctor.factories import OBJECT, load_factory

NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""The form of MODULE:FACTORY."""


def is_own(text: object) -> bool:
    """Whether a text has the form MODULE:FACTORY."""
    return isinstance(text, str) and NAME.fullmatch(text) is not None


def make_own(text: str, what: str, kind: type, *arguments: Any, **named: Any) -> Any:
    """What the factory makes, which must be of that kind. A factory without parameters is called without arguments."""
    factory = load_factory(text, what)
    if not inspect.signature(factory).parameters:
        arguments, named = (), {}
    try:
        made = factory(*arguments, **named)
    except Exception as error:  # a user's factory can fail in any way
        raise ValueError(f"making the {what} {text!r} fails with {words_of(error)}; correct it") from error
    if not isinstance(made, kind):
        place = f"{kind.__module__.rpartition('.')[0]}.{kind.__qualname__}"
        raise ValueError(f"{text!r} gives a {type(made).__name__}; give a factory that returns a {place}")
    return made


def words_of(error: Exception) -> str:
    """The error in one line, with the place in the code of a user where it was raised."""
    of_libraries = ("site-packages", str(Path(__file__).parents[1]))
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if not any(place in frame.filename for place in of_libraries)]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}{place}"


def check_kind(flag: str, kind: str, known: tuple[str, ...]) -> None:
    """Raise if a kind is neither one of the built-in ones nor MODULE:FACTORY."""
    if kind not in known and not is_own(kind):
        raise ValueError(f"{flag} is {kind}; give one of {', '.join(known)}, or MODULE:FACTORY")


def name_of(thing: Any) -> str:
    """The MODULE:FACTORY that makes an equal thing, if its class does without arguments; otherwise a description."""
    kind = type(thing)
    name = f"{kind.__module__}:{kind.__qualname__}"
    try:
        is_default = is_own(name) and kind.__module__ != "__main__" and bool(kind() == thing)
    except Exception:  # a user's class can fail in any way
        is_default = False
    return name if is_default else f"{OBJECT}{name}"


class Named(str):
    """The name of a Python object, with the object: settings are text, and what a user brings may be no text."""

    thing: Any

    def __new__(cls, name: str, thing: Any) -> "Named":
        named = super().__new__(cls, name)
        named.thing = thing
        return named

    def __reduce__(self) -> tuple[Any, ...]:
        return Named, (str(self), self.thing)


def named(thing: Any) -> str:
    """A name as it is, or an object by its name; a list of both is one text with commas."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, Sequence):
        return Named(",".join(part if isinstance(part, str) else name_of(part) for part in thing), thing)
    return Named(name_of(thing), thing)


def thing_of(name: Any) -> Any | None:
    """The object that a name came with; None for a plain name."""
    return getattr(name, "thing", None)
