"""`hopplus runs`: list runs with their progress and returns."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hopplus.cli.tables import make_table
from hopplus.cli.verbs.runs import Runs
from hopplus.runs.folder import CONFIG
from hopplus.runs.records import RETURN_TAG, final_means, read_run
from hopplus.runs.stopping import ended_at

NAMES = "run, agent and game"


def list_runs(asked: Runs) -> int:
    """Print a table of the runs."""
    folder = asked.folder
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; give the one that holds your runs, as in `hopplus runs runs`")
    numbers = ("seeds", "steps", "done", "return", "sampled", "greedy")
    table = make_table(f"runs in {escape(str(folder))}", NAMES, *numbers, right=numbers)
    folders = sorted(config.parent for config in folder.rglob(CONFIG))
    if not folders:
        raise ValueError(
            f"there is no run below {folder}; give another folder, or `hopplus train ppo --out {folder}/first`"
        )
    complaints = []
    for run in folders:
        try:
            names, cells = _describe(run)
        except (
            ValueError,
            TypeError,
            LookupError,
            ArithmeticError,
            OSError,
        ) as error:  # the other runs are still shown
            complaints.append(f"{run}: {error}")
            names, cells = "[red]?[/]", []
        table.add_row(f"{escape(str(run.relative_to(folder)))}\n{names}", *cells)
    console = Console()
    console.print(table)
    console.print(
        "return: mean over the last fifth of training. sampled, greedy: mean return of the final policies by "
        "`hopplus evaluate`."
    )
    print("".join(f"{complaint}\n" for complaint in complaints), end="")
    return 0


def _describe(folder: Path) -> tuple[str, list[str]]:
    """The agent and the game of a run, and the other cells of its row."""
    run = read_run(folder)
    steps = run.planned_steps
    if not steps:
        raise ValueError(f"{CONFIG}: its steps are {run.config['steps']!r}; restore it, or train again")
    done = int(run.env_steps[-1]) if len(run.env_steps) else 0
    means = final_means(run, RETURN_TAG) if len(run.env_steps) else None
    evaluation = run.evaluation or {}
    evaluated = [evaluation.get(name) for name in ("mean_return", "mean_return_greedy")]
    figures = ["-" if value is None else f"{value:.3f}" for value in evaluated]
    names = escape(f"{run.config['agent']} {run.config['game']}")
    share = 1 if ended_at(folder) is not None else done / steps
    more = f" + {run.population_steps:,}" if run.population_steps else ""
    cells = [str(run.config["seeds"]), f"{done if share == 1 else steps:,}{more}", f"{share:.0%}"]
    return f"[dim]{names}[/]", [*cells, f"{means.mean():.2f}" if means is not None else "-", *figures]
