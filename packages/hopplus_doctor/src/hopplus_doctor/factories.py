"""Things that a user names: MODULE:FACTORY can be imported, also from the working folder."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

OBJECT = "object of "
"""The start of the description of a thing that has no name."""


def load_factory(text: str, what: str) -> Callable[..., Any]:
    """The callable that MODULE:FACTORY names; it is not called."""
    if text.startswith(OBJECT):
        raise ValueError(f"the {what} was a Python object ({text}); give it in Python, as in hopplus.load(folder, ...)")
    module_name, _, factory_name = text.partition(":")
    if not module_name or not factory_name:
        raise ValueError(f"cannot load the {what} {text!r}; give MODULE:FACTORY, as in my_module:make")
    if "(" in text:
        name = text.partition("(")[0]
        raise ValueError(
            f"cannot load the {what} {text!r}: only scripts take values in brackets; write a function that makes it "
            f"with these values, and name that function in place of {name}"
        )
    sys.path.insert(0, "")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"cannot load the {what} {text!r}: {error}; give MODULE:FACTORY that can be imported from here"
        ) from None
    finally:
        sys.path.remove("")
    if not callable(factory):
        raise ValueError(f"{text!r} is a {type(factory).__name__}; give a function that makes the {what}")
    return factory
