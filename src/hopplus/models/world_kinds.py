"""The kinds of worlds by name: `--world.kind`."""

from jaxtyping import Array, Key

from hopplus.core.extensions import make_own
from hopplus.games.game import GameSpec
from hopplus.models import cells_world, fields_world, regression_world
from hopplus.models.config import WorldConfig
from hopplus.models.world import WorldModel


def init_world(config: WorldConfig, spec: GameSpec, *, key: Key[Array, ""]) -> WorldModel:
    """One member of the world that the settings name, before training."""
    kinds = {"cells": cells_world.init, "fields": fields_world.init, "regression": regression_world.init}
    if config.kind in kinds:
        return kinds[config.kind](config, spec, key=key)
    return make_own(config.kind, "world", WorldModel, config, spec, key=key)
