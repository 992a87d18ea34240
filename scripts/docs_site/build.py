"""Build the site: collect the pages, write the reference from the code, run Sphinx, and check the HTML."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from docs_site import html_checks, navigation, pages, reference

ROOT = Path(__file__).resolve().parents[2]


def build(out: Path) -> list[str]:
    """Build the site into `out`; return what is wrong with it."""
    source = out.with_name(f"{out.name}-source")
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    sections, known = navigation.read(ROOT / "docs"), pages.names(ROOT) | set(reference.PAGES)
    wrong = navigation.faults(sections, known)
    if wrong:
        return wrong
    wrong = pages.collect(ROOT, source)
    if wrong:
        return wrong
    for name, text in reference.all_pages(ROOT).items():
        path = source / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    navigation.write(sections, known, source / "index.md")
    settings = str(Path(__file__).parent)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", settings, source, out]
    if subprocess.run(command, check=False).returncode:
        return ["sphinx found the faults above"]
    return html_checks.faults(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="the folder of the site")
    out = parser.parse_args().out.resolve()
    wrong = build(out)
    for line in wrong:
        print(f"build_docs: {line}", file=sys.stderr)
    if not wrong:
        print(f"{out / 'index.html'}: {len(list(out.rglob('*.html')))} pages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
