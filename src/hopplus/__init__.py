"""Agents for mixed-motive games: they infer what others want, predict what they do, and can be audited."""

from importlib.metadata import version

__version__ = version("hopplus")
