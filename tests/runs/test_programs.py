"""A training program that was compiled before is read by its settings, and is never the wrong one."""

from contextlib import nullcontext
from dataclasses import replace

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from hopplus.core.compiled import PROGRAMS
from hopplus.doctor.faults import switched_on
from hopplus.runs import programs, training
from runs import tiny


@pytest.fixture
def traces(tmp_path, monkeypatch):
    """A folder for programs, and a list that grows whenever one is traced."""
    monkeypatch.setenv(PROGRAMS, str(tmp_path / "programs"))
    found, train_block = [], training.train_block

    def counted(*arguments):
        found.append(1)
        return train_block(*arguments)

    monkeypatch.setattr(training, "train_block", counted)
    # Programs that JAX reads from its own cache are not kept: here it reads none.
    place = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()
    yield found
    jax.config.update("jax_compilation_cache_dir", place)
    compilation_cache.reset_cache()


def kept(tmp_path):
    return sorted((tmp_path / "programs").glob("*"))


def test_the_same_run_is_traced_once_and_ends_with_the_same_bits(tmp_path, traces):
    config = tiny.config(updates=3)
    training.train(config, tmp_path / "one")
    training.train(config, tmp_path / "other")
    training.train(replace(config, seed=3, steps=2 * config.steps), tmp_path / "longer")
    assert len(traces) == 1 and len(kept(tmp_path)) == 1
    tiny.assert_same_run(tmp_path / "one", tmp_path / "other")


def test_a_program_from_the_cache_of_jax_is_not_kept(tmp_path, traces):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "of jax"))
    compilation_cache.reset_cache()
    config = tiny.config(updates=1)
    for name in ("one", "other"):
        training.train(config, tmp_path / name)
        for file in kept(tmp_path):
            file.unlink()
    training.train(config, tmp_path / "third")
    assert len(traces) == 3 and not kept(tmp_path)
    tiny.assert_same_run(tmp_path / "one", tmp_path / "third")


def test_a_planted_fault_neither_reads_nor_leaves_a_program(tmp_path, traces):
    config = tiny.config(updates=1)
    for name in ("faulty", "right", "faulty again"):
        with switched_on("clipping_across_seats") if "faulty" in name else nullcontext():
            training.train(config, tmp_path / name)
        assert len(kept(tmp_path)) == (name != "faulty")
    assert len(traces) == 3
    tiny.assert_same_run(tmp_path / "faulty", tmp_path / "faulty again")


def test_other_settings_and_other_sources_have_other_programs(tmp_path, traces, monkeypatch):
    config = tiny.config(updates=1)
    training.train(config, tmp_path / "one")
    training.train(replace(config, seeds=1), tmp_path / "fewer seeds")
    assert len(traces) == 2
    monkeypatch.setattr(programs, "_sources", lambda: "edited")
    training.train(config, tmp_path / "edited")
    assert len(traces) == 3 and len(kept(tmp_path)) == 3


def test_a_damaged_file_is_replaced(tmp_path, traces):
    config = tiny.config(updates=1)
    training.train(config, tmp_path / "one")
    (file,) = kept(tmp_path)
    whole = file.stat().st_size
    file.write_bytes(file.read_bytes()[: whole // 2])
    training.train(config, tmp_path / "other")
    assert len(traces) == 2 and kept(tmp_path) == [file] and file.stat().st_size > whole // 2


@pytest.mark.usefixtures("traces")
def test_what_a_user_wrote_is_compiled_anew(tmp_path):
    own = tiny.config(updates=1, game="learning.played:smallest_hunt")
    training.train(own, tmp_path / "one")
    assert not kept(tmp_path)


@pytest.mark.usefixtures("traces")
def test_the_oldest_programs_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "MOST", 1)
    for seeds in (1, 2):
        training.train(replace(tiny.config(updates=1), seeds=seeds), tmp_path / str(seeds))
    assert len(kept(tmp_path)) == 1
