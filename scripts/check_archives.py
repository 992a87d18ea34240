"""Look at what is in the wheels and source archives of both packages: `python scripts/check_archives.py FOLDER`.

Every archive needs its licence, the mark of its types, and each file of its source folder; a wheel holds nothing else.
The metadata must be what an index accepts: a version, a text that renders, a licence, and no address of a machine.
"""

import email
import re
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    "hopplus": ROOT / "src" / "hopplus",
    "hopplus_doctor": ROOT / "packages" / "hopplus_doctor" / "src" / "hopplus_doctor",
}
NEEDED = {
    "hopplus": (
        "py.typed",
        "__init__.pyi",
        "report/templates/page.html",
        "share/templates/page.js",
    ),
    "hopplus_doctor": ("py.typed", "templates/doctor.html"),
}
"""Files that are no Python, and whose loss no import would show."""
BESIDE = {"PKG-INFO", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", ".gitignore"}
"""What a source archive has beside the source."""
NOT_SHIPPED = re.compile(r"(^|/)(__pycache__|\.DS_Store|\.git|tests?|node_modules)(/|$)|\.(pyc|orig|rej)$")
MACHINE = re.compile(r"file://|/home/|/root/|/tmp/|/work/")
FIELDS = ("Name", "Version", "Summary", "License-Expression", "Requires-Python", "Description-Content-Type")


def source_files(package: str) -> set[str]:
    """The files of a package's source, below its folder."""
    folder = SOURCES[package]
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in found if not NOT_SHIPPED.search(name)}


def read_archive(path: Path) -> dict[str, bytes]:
    """The files of a wheel or a source archive; a source archive's without its outermost folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        opened = {member.name.split("/", 1)[1]: archive.extractfile(member) for member in members}
        return {name: file.read() for name, file in opened.items() if file is not None}


def faults(name: str, files: Mapping[str, bytes], sources: set[str]) -> list[str]:
    """What is wrong with an archive of this file name; `sources` are the files that its package must have."""
    package = name.split("-")[0]
    is_wheel = name.endswith(".whl")
    folder = package if is_wheel else f"src/{package}"
    wanted = {f"{folder}/{file}" for file in sources | {*NEEDED[package]}}
    wrong = [f"{name} lacks {file}" for file in sorted(wanted - {*files})]
    about = next((file for file in sorted(files) if file.endswith(("METADATA", "PKG-INFO"))), None)
    licences = [file for file in files if Path(file).name == "LICENSE"]
    if not licences or not all(b"Apache License" in files[file] for file in licences):
        wrong.append(f"{name} lacks its licence")
    if is_wheel:
        extra = sorted(file for file in {*files} - wanted if ".dist-info/" not in file)
        wrong += [f"{name} has {file}, which is not in the source" for file in extra]
    else:
        extra = sorted(file for file in files if not file.startswith(f"{folder}/") and file not in BESIDE)
        wrong += [f"{name} has {file}, which is no part of the package" for file in extra]
    wrong += [f"{name} has {file}" for file in sorted(files) if NOT_SHIPPED.search(file)]
    if about is None:
        return [*wrong, f"{name} has no metadata"]
    return wrong + metadata_faults(name, email.message_from_bytes(files[about]))


def metadata_faults(name: str, about: Message) -> list[str]:
    """What an index would refuse, or a user would miss, in the metadata of an archive."""
    wrong = [f"{name} has no {field} in its metadata" for field in FIELDS if not about[field]]
    version = name.removesuffix(".tar.gz").split("-")[1]
    if about["Version"] != version:
        wrong.append(f"{name} says that its version is {about['Version']}")
    for requirement in about.get_all("Requires-Dist", []):
        if "@" in requirement or MACHINE.search(requirement):
            wrong.append(f"{name} requires {requirement}, which is an address")
    if MACHINE.search(about.as_string()):
        wrong.append(f"{name} names a place of one machine in its metadata")
    return wrong


def main(folder: Path) -> int:
    paths = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    kinds = {(path.name.split("-")[0], path.suffix) for path in paths}
    wrong = [
        f"there is no {kind} of {package}"
        for package in SOURCES
        for kind in (".whl", ".gz")
        if (package, kind) not in kinds
    ]
    for path in paths:
        files = read_archive(path)
        found = faults(path.name, files, source_files(path.name.split("-")[0]))
        print(f"{path.name}: {len(files)} files, {path.stat().st_size / 1024:.0f} kB, {len(found)} faults")
        wrong += found
    for line in wrong:
        print(f"check_archives: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
