"""Flags whose value is a name; in Python it may be an object. No JAX here."""

import tyro

TEXT = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="STR",
    instance_from_str=lambda texts: texts[0],
    is_instance=lambda _: True,
    str_from_instance=lambda thing: [str(thing)],
)
