"""`hopplus runs`: what was trained, how far, and how well."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hopplus.runs.folder import CONFIG
from hopplus.runs.records import RETURN_TAG, final_means, read_run

Folder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]


def runs(folder: Folder = Path("runs")) -> int:
    """List the runs below a folder.

    Args:
        folder: Where to look.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; give the one that holds your runs, as in `hopplus runs runs`")
    table = Table(title=f"runs in {folder}", title_justify="left")
    table.add_column("run", no_wrap=True)
    for column in ("agent", "game", "seeds", "steps", "done", "return, last fifth", "evaluated: sampled", "greedy"):
        table.add_column(column)
    found = sorted(config.parent for config in folder.rglob(CONFIG))
    if not found:
        raise ValueError(
            f"there is no run below {folder}; give another folder, or `hopplus train ppo --out {folder}/first`"
        )
    complaints = []
    for run in found:
        try:
            cells = _describe(run)
        except (ValueError, TypeError, LookupError, ArithmeticError, OSError) as error:  # it must not hide the others
            complaints.append(f"{run}: {error}")
            cells = ["[red]?[/]"]
        table.add_row(escape(str(run.relative_to(folder))), *cells)
    Console().print(table)
    print("".join(f"{complaint}\n" for complaint in complaints), end="")
    return 0


def _describe(folder: Path) -> list[str]:
    run = read_run(folder)
    steps = int(run.config["steps"])
    done = int(run.env_steps[-1]) if len(run.env_steps) else 0
    means = final_means(run, RETURN_TAG) if len(run.env_steps) else None
    found = run.evaluation or {}
    evaluated = [found.get(name) for name in ("mean_return", "mean_return_greedy")]
    figures = ["-" if value is None else f"{value:.3f}" for value in evaluated]
    cells = [escape(str(run.config[name])) for name in ("agent", "game")]
    cells += [str(run.config["seeds"]), f"{steps:,}", f"{done / steps:.0%}"]
    return [*cells, f"{means.mean():.2f}" if means is not None else "-", *figures]
