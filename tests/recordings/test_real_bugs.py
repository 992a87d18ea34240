"""Three of the faults that were in public code: the part is named first, and the fixed version is not broken."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def real_bugs(monkeypatch):
    pytest.importorskip("pettingzoo", reason="one of the programs is a PettingZoo environment")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import real_bugs

    return real_bugs


def test_three_real_faults_are_found_and_their_fixes_cleared(real_bugs, tmp_path):
    quick = [(bug, when) for bug, when in real_bugs.BUGS if bug.name in real_bugs.QUICK]
    assert len(quick) == 3
    rows = [real_bugs.measured(bug, tmp_path / str(at), when=when, seed=1) for at, (bug, when) in enumerate(quick)]
    assert [row["blamed"][:1] for row in rows] == [[bug.part] for bug, _ in quick]
    assert [row["fixed_blamed"] for row in rows] == [[], [], []]
    counts = real_bugs.summary(rows)
    assert (counts["found"], counts["bugs"], counts["false_alarms"]) == (3, 3, 0)


@pytest.mark.heavy
def test_all_real_faults(real_bugs, tmp_path):
    rows = [
        real_bugs.measured(bug, tmp_path / str(at), when=when, seed=2) for at, (bug, when) in enumerate(real_bugs.BUGS)
    ]
    counts = real_bugs.summary(rows)
    assert counts["found_share"] >= 10 / 12 and counts["false_alarms"] == 0
