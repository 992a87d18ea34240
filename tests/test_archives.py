"""What `scripts/check_archives.py` finds in wheels and source archives; `.ci/run` asks it about the real ones."""

import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import check_archives
from check_archives import faults, main, read_archive, source_files

ROOT = Path(__file__).resolve().parents[1]
ABOUT = b"""Metadata-Version: 2.4
Name: hopplus-doctor
Version: 1.0.0
Summary: Finds faults
License-Expression: Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown
Requires-Dist: numpy>=2.0

# hopplus_doctor
"""
SOURCES = {"__init__.py", "templates/page.css"}
WHEEL, SDIST = "hopplus_doctor-1.0.0-py3-none-any.whl", "hopplus_doctor-1.0.0.tar.gz"


def wheel() -> dict[str, bytes]:
    needed = check_archives.NEEDED["hopplus_doctor"]
    inside = {f"hopplus_doctor/{name}": b"" for name in {*SOURCES, *needed}}
    info = "hopplus_doctor-1.0.0.dist-info"
    return inside | {f"{info}/METADATA": ABOUT, f"{info}/licenses/LICENSE": b"Apache License", f"{info}/RECORD": b""}


def source_archive() -> dict[str, bytes]:
    inside = {f"src/{name}": content for name, content in wheel().items() if ".dist-info/" not in name}
    return inside | {"PKG-INFO": ABOUT, "LICENSE": b"Apache License", "pyproject.toml": b""}


def test_good_archives_have_no_faults():
    assert faults(WHEEL, wheel(), SOURCES) == [] and faults(SDIST, source_archive(), SOURCES) == []


@pytest.mark.parametrize("lost", ["hopplus_doctor/py.typed", "hopplus_doctor/templates/page.css"])
def test_a_lost_file_is_named(lost):
    files = wheel()
    del files[lost]
    assert faults(WHEEL, files, SOURCES) == [f"{WHEEL} lacks {lost}"]


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("hopplus_doctor/secret.txt", b"", "which is not in the source"),
        ("tests/test_x.py", b"", "tests/test_x.py"),
        ("hopplus_doctor/__pycache__/x.pyc", b"", "x.pyc"),
        ("hopplus_doctor-1.0.0.dist-info/licenses/LICENSE", b"all rights reserved", "lacks its licence"),
        ("hopplus_doctor-1.0.0.dist-info/METADATA", ABOUT.replace(b"1.0.0", b"1.0.1"), "its version is 1.0.1"),
        ("hopplus_doctor-1.0.0.dist-info/METADATA", ABOUT.replace(b"numpy>=2.0", b"x @ file:///a"), "an address"),
        ("hopplus_doctor-1.0.0.dist-info/METADATA", ABOUT.replace(b"Summary: Finds faults\n", b""), "no Summary"),
        ("hopplus_doctor-1.0.0.dist-info/METADATA", ABOUT + b"see /home/me\n", "a place of one machine"),
    ],
)
def test_what_does_not_belong_into_a_wheel_is_named(name, content, fault):
    found = faults(WHEEL, wheel() | {name: content}, SOURCES)
    assert found and any(fault in line for line in found)


def test_a_source_archive_holds_one_package():
    found = faults(SDIST, source_archive() | {"packages/other/src/x.py": b""}, SOURCES)
    assert found == [f"{SDIST} has packages/other/src/x.py, which is no part of the package"]


def test_both_kinds_of_archives_are_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("x/y.py", "1")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a-1.0/x/y.py")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"1"))
    assert read_archive(tmp_path / "a.whl") == read_archive(tmp_path / "a.tar.gz") == {"x/y.py": b"1"}


def test_a_folder_without_archives_fails(tmp_path, capsys):
    assert main(tmp_path) == 1
    assert "there is no .whl of hopplus_doctor" in capsys.readouterr().err


def test_the_source_has_what_the_archives_need():
    for package, needed in check_archives.NEEDED.items():
        assert {*needed} <= source_files(package)


def test_the_lowest_versions_are_those_of_the_packages():
    """Every lower bound is what scripts/test_lowest installs; bounds of tools that it does not need are left out."""
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = dict(line.lower().split("==") for line in lines if not line.startswith("#"))
    bounds = {}
    for place in (ROOT, ROOT / "packages" / "hopplus_doctor"):
        project = tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for text in [*project["dependencies"], *project.get("optional-dependencies", {}).get("pettingzoo", [])]:
            wanted = Requirement(text)
            if wanted.name != "hopplus-doctor":
                bounds.setdefault(wanted.name.lower(), []).append(wanted.specifier)
    assert {*bounds} == {*lowest}
    for name, specifiers in bounds.items():
        for specifier in specifiers:
            written = next(each.version for each in specifier if each.operator == ">=")
            exact = lowest[name]
            assert exact == written or exact.startswith(f"{written}."), (name, written, exact)
