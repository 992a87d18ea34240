"""A training program that was compiled before is read by its settings, and is never the wrong one."""

from dataclasses import replace

import jax
import jax.numpy as jnp
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


def small_block(config):
    """A program with the arguments and results of a block of updates, in no time; whether it was compiled."""
    compiled, state = [], jax.ShapeDtypeStruct((2,), jnp.float32)
    counts = jax.ShapeDtypeStruct((2,), jnp.int32)

    def compiler():
        compiled.append(1)
        return jax.jit(lambda state, counts: (state + counts, {"total": state.sum()})).lower(state, counts).compile()

    block = programs.compiled_block(config, state, counts, compiler)
    after, metrics = block(jnp.ones(2), jnp.arange(2, dtype=jnp.int32))
    assert after.tolist() == [1, 2] and float(metrics["total"]) == 2
    return bool(compiled)


@pytest.mark.usefixtures("traces")
def test_a_program_from_the_cache_of_jax_is_not_kept(tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "of jax"))
    least = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    compilation_cache.reset_cache()
    assert small_block(tiny.config()) and len(kept(tmp_path)) == 1
    kept(tmp_path)[0].unlink()
    assert small_block(tiny.config()) and not kept(tmp_path)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least)


@pytest.mark.usefixtures("traces")
def test_a_planted_fault_neither_reads_nor_leaves_a_program(tmp_path):
    config = tiny.config()
    with switched_on("clipping_across_seats"):
        assert small_block(config) and not kept(tmp_path)
    assert small_block(config) and len(kept(tmp_path)) == 1 and not small_block(config)
    with switched_on("clipping_across_seats"):
        assert small_block(config) and len(kept(tmp_path)) == 1


@pytest.mark.usefixtures("traces")
def test_other_settings_and_other_sources_have_other_programs(tmp_path, monkeypatch):
    config = tiny.config(updates=1)
    assert small_block(config) and not small_block(replace(config, seed=3, steps=2 * config.steps))
    assert small_block(replace(config, seeds=1)) and small_block(tiny.config(updates=1, ppo={"clip": 0.3}))
    monkeypatch.setattr(programs, "_sources", lambda: "edited")
    assert small_block(config) and len(kept(tmp_path)) == 4


@pytest.mark.usefixtures("traces")
def test_a_damaged_file_is_replaced(tmp_path):
    assert small_block(tiny.config())
    (file,) = kept(tmp_path)
    whole = file.stat().st_size
    file.write_bytes(file.read_bytes()[: whole // 2])
    assert small_block(tiny.config())
    assert kept(tmp_path) == [file] and file.stat().st_size > whole // 2


@pytest.mark.usefixtures("traces")
def test_what_a_user_wrote_is_compiled_anew(tmp_path):
    own = tiny.config(updates=1, game="learning.played:smallest_hunt")
    assert small_block(own) and small_block(own) and not kept(tmp_path)


@pytest.mark.usefixtures("traces")
def test_the_oldest_programs_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "MOST", 1)
    for seeds in (1, 2):
        small_block(replace(tiny.config(updates=1), seeds=seeds))
    assert len(kept(tmp_path)) == 1
