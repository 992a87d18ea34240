"""Pictures of pages that hopplus writes, by a headless Chromium."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from hopplus_doctor.answer import Answer, Examination, Finding, Picture, Significance
from hopplus_doctor.page import doctor_page
from hopplus_doctor.statistics import Interval
from picture_parts.common import ROOT, NotMeasuredError, results

WIDTH = 1100
REPLAYED = "runs/curve-hop_plus-4x4"


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
    """The viewer of episodes of a report."""
    page = ROOT / REPLAYED / "report.html"
    if not page.exists():
        raise NotMeasuredError(
            f"{REPLAYED}/report.html is not there; hopplus train hop_plus --seeds 3 --steps 40000 --schedule 120000 "
            f"--out {REPLAYED}, and hopplus report {REPLAYED} --co-players nearest_stag,nearest_hare,random "
            "--planning.kind search"
        )
    html = page.read_text(encoding="utf-8")
    shown = html.replace("</head>", "<style>body > *:not(:has(.replay)) { display: none }</style></head>")
    save_page(shown, path, 842, width=928)
