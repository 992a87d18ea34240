"""Write a notebook with its stored outputs as a page. Nothing is executed."""

import base64
import json
import re
from pathlib import Path

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
NOTE = "*This page is [{name}]({name}), a notebook with stored outputs.*\n"


def page(path: Path, pictures: Path) -> str:
    """The Markdown of a notebook; its pictures are written into a folder beside the page."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for place, output in enumerate(cell["outputs"]):
            parts.append(_output(output, pictures, f"{path.stem}_{number}_{place}.png"))
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n{NOTE.format(name=path.name)}{rest}\n"


def _output(output: dict, pictures: Path, name: str) -> str:
    """One stored output: a picture, or text."""
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = output.get("data", {})
    if "image/png" in data:
        pictures.mkdir(parents=True, exist_ok=True)
        (pictures / name).write_bytes(base64.b64decode("".join(data["image/png"])))
        return f"![What the cell above draws]({pictures.name}/{name})"
    return _text("".join(data["text/plain"]))


def _text(text: str) -> str:
    return f"```text\n{COLOURS.sub('', text).rstrip()}\n```"
