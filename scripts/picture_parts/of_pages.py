"""Pictures of pages that hopplus writes, by a headless Chromium."""

import shutil
import subprocess
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from PIL import Image

from hopplus.cli.main import main
from hopplus_doctor.answer import Answer, Examination, Finding, Picture, Significance
from hopplus_doctor.page import doctor_page
from hopplus_doctor.statistics import Interval
from picture_parts.common import ROOT, NotMeasuredError, results

WIDTH = 1100
REPLAYED = "runs/curve-hop_plus-4x4"
ONLY_VIEWER = """<script>
document.body.replaceChildren(...document.querySelectorAll("#replay > svg, #viewer"));
for (let step = 0; step < 3; step++) document.querySelector("[data-go=forward]").click();
</script>"""
"""Takes everything but the viewer of episodes from a report, and goes to the third step."""


def chromium() -> str:
    """The program, by one of its names."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise NotMeasuredError("there is no Chromium on this machine")


def save_page(html: str, path: Path, height: int, *, top: int = 0, width: int = WIDTH) -> None:
    """Write what a page shows from `top` on, `height` pixels of it."""
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "page.html", Path(folder) / "page.png"
        page.write_text(html, encoding="utf-8")
        line = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--screenshot={shot}"]
        line += [f"--window-size={width},{top + height}", f"--user-data-dir={folder}/profile", page.as_uri()]
        subprocess.run(line, check=True, capture_output=True, timeout=180)
        with Image.open(shot) as image:
            image.crop((0, top, width, top + height)).convert("P", palette=Image.Palette.ADAPTIVE).save(
                path, optimize=True
            )


def examination(found: dict[str, Any]) -> Examination:
    """The examination of a doctor.json."""
    answers = []
    for answer in found["answers"]:
        findings = []
        for one in answer["findings"]:
            kinds = {"effect": Interval, "test": Significance, "picture": Picture}
            parts = {name: kind(**one[name]) if one[name] else None for name, kind in kinds.items()}
            findings.append(Finding(**one | parts))
        answers.append(Answer(**answer | {"findings": tuple(findings)}))
    return Examination(found["subject"], found["command"], found["version"], tuple(answers), found["program"])


def doctor(path: Path) -> None:
    """The doctor's page of the first investigation."""
    save_page(doctor_page(examination(results("investigation_player_1")["examination"])), path, 1150)


def replay(path: Path) -> None:
    """The third step of the first episode of a report."""
    _need(
        "report.html", f"hopplus report {REPLAYED} --co-players nearest_stag,nearest_hare,random --planning.kind search"
    )
    html = (ROOT / REPLAYED / "report.html").read_text(encoding="utf-8")
    save_page(html.replace("</body>", ONLY_VIEWER + "</body>"), path, 842, width=928)


def trained(path: Path) -> None:
    """An episode of a trained agent with scripts, and what the agent believes."""
    _need("config.json")
    seats = f"{REPLAYED},nearest_stag,nearest_hare,random"
    with chdir(ROOT):
        main(["play", "stag-hunt-4x4", "--seats", seats, "--seed", "2", "--seconds", "1", "--out", str(path)])


def _need(file: str, *more: str) -> None:
    if not (ROOT / REPLAYED / file).exists():
        train = f"hopplus train hop_plus --seeds 3 --steps 40000 --schedule 120000 --out {REPLAYED}"
        raise NotMeasuredError(f"{REPLAYED}/{file} is not there; {', then '.join([train, *more])}")
