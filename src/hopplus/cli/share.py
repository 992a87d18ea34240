"""`hopplus export` and `hopplus share`: trained agents for other people."""

from rich.console import Console

from hopplus.cli.verbs.export import Export
from hopplus.cli.verbs.share import Share
from hopplus.runs.run import load
from hopplus.share.exports import export, suggested_folder
from hopplus.share.page import share


def write_export(asked: Export) -> int:
    """Write the export of a run."""
    with Console(stderr=True).status("writing programs"):
        out = export(asked.run, asked.out or suggested_folder(asked.run), seed=asked.seed, licence=asked.licence)
    print(f"wrote {out}")
    print(f"next: read {out / 'README.md'}; docs/export.md says how to upload the folder")
    return 0


def write_page(asked: Share) -> int:
    """Write the page of a run."""
    target = asked.out or asked.run / "share.html"
    if target.is_dir() or not target.parent.is_dir():
        raise ValueError(f"--out is {target}; give a file in a folder that exists, as in --out page.html")
    with Console(stderr=True).status("writing the page"):
        runs = [load(folder) for folder in (asked.run, *asked.more)]
        share(runs, target, seed=asked.seed, lineup=asked.lineup)
    print(f"wrote {target} ({target.stat().st_size / 1e6:.1f} MB)")
    if searching := [run.folder.name for run in runs if run.config.learner.planning.is_used]:
        print(f"{', '.join(searching)} searches when it acts; the page plays its policy without search")
    return 0
