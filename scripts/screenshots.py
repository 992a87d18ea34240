"""Pictures of pages of the built site, at the width of a desktop and of a phone, light and dark, to be looked at.

scripts/build_docs && python scripts/screenshots.py --out /tmp/screenshots

It needs chromium (`--browser`), and no network. A phone is a frame in a wider window, because chromium has no windows
that are as narrow.
"""

import argparse
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("index", "start/first_run", "tutorials/own_game.zh-CN", "doctor", "reference/cli")
WIDTHS = {"desktop": (1280, 1000), "phone": (390, 844)}
SCHEMES = {"light": 1, "dark": 0}
"""What chromium calls them in its settings."""
FRAME = '<body style="margin:0"><iframe src="{page}" width="{width}" height="{height}" style="border:0"></iframe>'
NARROWEST = 500


def shoot(browser: str, page: Path, out: Path, *, width: int, height: int, scheme: int) -> None:
    """One picture of one page."""
    with tempfile.TemporaryDirectory() as folder:
        address = page.resolve().as_uri()
        if width < NARROWEST:
            frame = Path(folder) / "frame.html"
            frame.write_text(FRAME.format(page=address, width=width, height=height), encoding="utf-8")
            address = frame.as_uri()
        line = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-extensions"]
        line += [f"--user-data-dir={folder}/profile", "--allow-file-access-from-files", "--virtual-time-budget=3000"]
        line += [f"--window-size={max(width, NARROWEST)},{height}", f"--blink-settings=preferredColorScheme={scheme}"]
        subprocess.run([*line, f"--screenshot={out}", address], check=True, capture_output=True, timeout=300)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "docs", help="the folder of the built site")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the pictures")
    parser.add_argument("--pages", nargs="+", default=PAGES, help="pages, without .html")
    parser.add_argument("--browser", default="chromium")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for page, (kind, (width, height)), (name, scheme) in product(given.pages, WIDTHS.items(), SCHEMES.items()):
        out = given.out / f"{page.replace('/', '-')}-{kind}-{name}.png"
        shoot(given.browser, given.site / f"{page}.html", out, width=width, height=height, scheme=scheme)
        print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
