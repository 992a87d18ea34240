"""Execute the notebooks of docs/notebooks and store what they print and draw.

python scripts/notebooks.py                    all, each in an empty folder; the outputs are written into the files
python scripts/notebooks.py first_run          one of them
python scripts/notebooks.py --check first_run  execute it and leave the file as it is: CI does that

A cell that raises or prints a warning ends the program with exit code 1. It needs the extra `docs`. The site shows the
stored outputs and executes nothing.
"""

import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
SECONDS = 600
"""The longest that a cell may take."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def execute(path: Path) -> Any:
    """The notebook with the outputs of a new kernel, which works in an empty folder."""
    import nbformat  # pyright: ignore[reportMissingImports]
    from nbclient import NotebookClient  # pyright: ignore[reportMissingImports]

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, startup_timeout=SECONDS, resources=place).execute()
    return notebook


def cleaned(notebook: Any) -> Any:
    """The notebook without what differs from run to run and from machine to machine."""
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if "text" in output:
                output.text = ADDRESS.sub("", output.text)
            if "data" in output:
                output.data.pop("text/html", None)
                if "image/png" in output.data:
                    output.data.pop("text/plain", None)
            output.pop("metadata", None)
            if output.output_type in ("display_data", "execute_result"):
                output.metadata = {}
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def complaints(notebook: Any) -> list[str]:
    """What cells wrote to stderr: a notebook that is read warns of nothing."""
    return [
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    ]


def main(arguments: Sequence[str]) -> int:
    import nbformat  # pyright: ignore[reportMissingImports]

    is_check = "--check" in arguments
    wanted = [name for name in arguments if name != "--check"] or names()
    if unknown := {*wanted} - {*names()}:
        print(f"there is no notebook {', '.join(sorted(unknown))}; give some of {', '.join(names())}", file=sys.stderr)
        return 2
    for name in wanted:
        path, started = FOLDER / f"{name}.ipynb", time.perf_counter()
        notebook = execute(path)
        if found := complaints(notebook):
            print(f"{name}: a cell wrote to stderr:\n{''.join(found)}", file=sys.stderr)
            return 1
        if not is_check:
            nbformat.write(cleaned(notebook), path)
        print(f"{name}: {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
