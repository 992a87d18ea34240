from itertools import count

import jax.numpy as jnp
import pytest

import broken_games
from every_preset import EVERY_PRESET
from hopplus.games import contract, promises
from hopplus.games.board import Board
from hopplus.games.harvest import Harvest
from hopplus.games.presets import make
from hopplus.games.stag_hunt import StagHunt
from probes import FAULTS, SMALL, RewardOutsideSupport, WallsMove


@pytest.mark.parametrize("name", EVERY_PRESET)
def test_every_preset_keeps_the_contract(name):
    findings = contract.check(make(name))
    assert [finding.name for finding in findings if finding.fault] == []
    assert len(findings) == len(contract.PROMISES_OF_A_RESET) + len(contract.PROMISES_OF_PLAY)


def test_all_options_together_keep_the_contract():
    grid = Board(6, 7, obstacle_pieces=2, arena_sides=(4, 6))
    contract.check(
        StagHunt(grid=grid, num_players=5, num_stags=2, num_hares=3, prey_moves=0.5, steps_after_first_catch=4)
    )


@pytest.mark.parametrize("away_steps", [0, 3])
def test_views_with_the_others_summed_keep_the_contract(away_steps):
    contract.check(Harvest(grid=Board(4, 4), num_players=5, horizon=20, away_steps=away_steps, others="summed"))


class CountsItself(Harvest):
    def observe(self, state):
        views = super().observe(state)
        planes = views["planes"]
        return views | {"planes": planes.at[..., 1].add(planes[..., 0])}


def test_a_view_that_sums_the_viewer_too_is_rejected():
    game = CountsItself(grid=Board(4, 4), horizon=20, others="summed")
    with pytest.raises(contract.BrokenGameError, match=r"^ego views: .* the sum of the others after it"):
        contract.check(game, only=["ego views"])


@pytest.mark.parametrize("broken", FAULTS, ids=lambda broken: broken.__name__)
def test_broken_games_are_rejected_by_name(broken):
    promise, words = FAULTS[broken]
    game = broken(grid=Board(4, 4, obstacle_pieces=1) if broken is WallsMove else SMALL, num_hares=3)
    with pytest.raises(contract.BrokenGameError, match=f"^{promise}: ") as caught:
        contract.check(game, only=[promise])
    assert words in str(caught.value)


@pytest.mark.parametrize("broken", broken_games.FAULTS, ids=lambda broken: broken.__name__)
def test_broken_versions_of_other_games_are_rejected_by_name(broken):
    _, promise, words = broken_games.FAULTS[broken]
    with pytest.raises(contract.BrokenGameError, match=f"^{promise}: ") as caught:
        contract.check(broken_games.broken(broken), only=[promise])
    assert words in str(caught.value)


def test_every_fault_is_named():
    with pytest.raises(contract.BrokenGameError) as caught:
        contract.check(RewardOutsideSupport(grid=SMALL))
    assert str(caught.value).startswith("rewards: a reward of ")
    assert "\n" not in str(caught.value), "the fault of one promise is blamed on another"


def test_orders_of_a_large_table_are_orders_and_hold_its_turns():
    orders = promises.seat_orders(StagHunt(grid=Board(4, 4), num_players=6).spec)
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert [1, 2, 3, 4, 5, 0] in orders and len(orders) == 24
    assert len(promises.seat_orders(StagHunt(grid=SMALL).spec)) == 23  # all but the order as it is


def test_a_promise_that_does_not_exist_is_not_taken_for_kept():
    with pytest.raises(ValueError, match="there is no promise called 'seat'; give one of shapes, keys"):
        contract.check(StagHunt(grid=SMALL), only=["seat"])


class RoundsAnew(StagHunt):
    """Each program that is compiled rounds its rewards in another way."""

    def step(self, state, actions, *, key):
        after, rewards = super().step(state, actions, key=key)
        return after, rewards + jnp.float32(next(PROGRAMS) * 2e-7)


PROGRAMS = count()


class OfAnotherLibrary(RoundsAnew):
    @property
    def is_bit_exact(self):
        return False


def test_only_an_environment_of_another_library_may_round_in_another_way():
    small = {"grid": SMALL}
    with pytest.raises(contract.BrokenGameError, match=r"^batch: .* \(by rounding alone"):
        contract.check(RoundsAnew(**small), only=["batch"])
    contract.check(OfAnotherLibrary(**small), only=["same bits", "batch"])
