"""Checks of settings: each raises a ValueError that names the flag and what to give instead. No JAX here."""

NUM_SEEDS = 2**32
"""JAX keeps 32 bits of a seed: a larger or negative one would silently be the same as another."""


def check_number(group: str, name: str, value: float | int, fine: bool, wanted: str) -> None:
    """Raise unless a setting of that group of flags is fine."""
    if not fine:
        raise ValueError(f"--{group}.{name.replace('_', '-')} is {value}; give a number {wanted}")


def check_counts(group: str, settings: object, *names: str) -> None:
    """Raise unless these settings of that group of flags are 1 or more."""
    for name in names:
        check_number(group, name, getattr(settings, name), getattr(settings, name) >= 1, "of 1 or more")


def check_least(group: str, settings: object, least: int, *names: str) -> None:
    """Raise unless these settings of that group of flags are at least that large."""
    for name in names:
        if (value := getattr(settings, name)) < least:
            raise ValueError(f"--{group}.{name.replace('_', '-')} is {value}; give {least} or more")


def check_seed(seed: int) -> None:
    """Raise unless JAX can use the seed."""
    if not 0 <= seed < NUM_SEEDS:
        raise ValueError(f"--seed is {seed}; give a whole number from 0 to {NUM_SEEDS - 1}")


class NonFiniteRunError(RuntimeError):
    """Training produced parameters that are not finite."""
