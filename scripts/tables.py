"""Write the tables of the README and of docs/results: results/*.json, shown as results/tables.toml says.

python scripts/tables.py            write every table between its markers
python scripts/tables.py --check    fail where a page is not what it would write

The head of results/tables.toml explains its words.
"""

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVS: dict[str, Any] = tomllib.loads((ROOT / "results" / "tables.toml").read_text())
CHINESE: dict[str, str] = ENVS.pop("chinese")
"""Words that results hold and a Chinese page shows in Chinese, such as the names of variants."""
NOT_YET = {
    "en": "There are no figures yet. These commands measure them and write this table:",
    "zh": "尚无数据。以下命令完成测量并写入本表：",
}
REDUCERS: dict[str, Callable[[list[float]], float]] = {
    "@mean": lambda values: sum(values) / len(values),
    "@min": min,
    "@max": max,
    "@sum": sum,
}


def farther(interval: dict[str, float]) -> float:
    """The distance from the estimate to the farther end."""
    return max(interval["high"] - interval["estimate"], interval["estimate"] - interval["low"])


FORMATS: dict[str, Callable[[Any, str], str]] = {
    "interval": lambda value, spec: f"{value['estimate']:{spec}} ({value['low']:{spec}} to {value['high']:{spec}})",
    "±": lambda value, spec: f"{value['estimate']:{spec}} ± {farther(value):{spec}}",
    "yes_no": lambda value, _: "yes" if value else "no",
    "list": lambda value, _: ", ".join(value) or "-",
}


@dataclass(frozen=True)
class Row:
    """A place in a results file, and the words that the definition adds to it."""

    file: str
    place: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """What each * of the definition's path stands for here."""
    words: dict[str, Any] = field(default_factory=dict)
    number: int = 1


@cache
def read(file: str) -> dict[str, Any]:
    return json.loads((ROOT / "results" / f"{file}.json").read_text())


def is_there(file: str) -> bool:
    return (ROOT / "results" / f"{file}.json").exists()


def files_of(env: dict[str, Any]) -> list[str]:
    """The results that the rows of a table are from."""
    return [words.get("file", env.get("file")) for words in env.get("rows", [env])]


def split(path: str) -> tuple[str, ...]:
    return tuple(key for key in path.split(" > ") if key not in ("", "."))


def child(value: Any, key: str) -> Any:
    """The entry of that name, or None."""
    if isinstance(value, list):
        return value[int(key)]
    return None if value is None else value.get(key)


def find(value: Any, path: tuple[str, ...]) -> Any:
    """What stands at a path; a list where the path has * or a slice."""
    if not path:
        return value
    key, *rest = path
    if key in REDUCERS:
        return REDUCERS[key](find(value, tuple(rest)))
    if key == "*":
        return [find(each, tuple(rest)) for each in (value.values() if isinstance(value, dict) else value)]
    if bounds := re.fullmatch(r"(\d*):(\d*)", key):
        start, end = (int(bound) if bound else None for bound in bounds.groups())
        return [find(each, tuple(rest)) for each in value[start:end]]
    return find(child(value, key), tuple(rest))


def places(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Every place that a path with * stands for, and the keys in the place of each *."""
    if not path:
        yield (), ()
        return
    key, *rest = path
    names = [key] if key != "*" else [str(name) for name in (value if isinstance(value, dict) else range(len(value)))]
    for name in names:
        for place, keys in places(child(value, name), tuple(rest)):
            yield (name, *place), (name, *keys) if key == "*" else keys


def rows_of(env: dict[str, Any]) -> list[Row]:
    rows = []
    for words in env.get("rows", [{}]):
        words = {name: env[name] for name in ("file", "over", "where") if name in env} | words
        for place, keys in places(read(words["file"]), split(words.get("over", ""))):
            if "where" not in words or find(read(words["file"]), (*place, *split(words["where"]))):
                rows.append(Row(words["file"], place, keys, words, len(rows) + 1))
    return rows


@dataclass
class Writer:
    """Fills in words in one language, and remembers which files they came from."""

    language: str
    used: dict[str, None] = field(default_factory=dict)

    def fill(self, text: Any, row: Row) -> str:
        """Words with each {path | format} replaced by what the results say."""
        text = text[self.language] if isinstance(text, dict) else text
        text = re.sub(r"\$(\w+)", lambda name: self._named(name[1], row), text)
        return re.sub(r"\{([^{}]+)\}", lambda asked: self._cell(asked[1], row), text)

    def _named(self, name: str, row: Row) -> str:
        return row.keys[int(name) - 1] if name.isdigit() else str(row.number if name == "number" else row.words[name])

    def _cell(self, asked: str, row: Row) -> str:
        paths, _, form = asked.partition(" | ")
        form, _, absent = f" {form}".partition(" or ")
        dividend, *divisors = paths.split(" / ")
        if dividend.startswith("word "):
            return self._word(dividend.removeprefix("word "))
        first = self._value(dividend, row)
        for path in divisors:
            divisor = float(path) if path.isdigit() else self._value(path, row)
            first = {key: part / divisor for key, part in first.items()} if isinstance(first, dict) else first / divisor
        if first is None:
            if not absent:
                raise ValueError(f"results/{row.file}.json has no {asked}")
            return absent
        name, _, spec = form.strip().partition(" ")
        if name == "word":
            return self._word(str(first))
        shown = FORMATS[name](first, spec) if name in FORMATS else format(first, form.strip())
        return shown.replace(" to ", " 至 ") if name == "interval" and self.language == "zh" else shown

    def _word(self, text: str) -> str:
        return CHINESE.get(text, text) if self.language == "zh" else text

    def _value(self, path: str, row: Row) -> Any:
        if path in row.words:
            return self.fill(row.words[path], row)
        file, from_file, path = path.rpartition("! ")
        start = () if from_file or path.startswith("/") else row.place
        file = file or row.file
        self.used[file] = None
        return find(read(file), (*start, *split(path.removeprefix("/"))))

    def columns(self, env: dict[str, Any], row: Row) -> Iterator[tuple[str, str]]:
        """The heading and the cell of each column."""
        for column in env["columns"]:
            if isinstance(column, list):
                yield self.fill(column[0], Row(row.file)), self.fill(column[1], row)
                continue
            for other in rows_of(ENVS[column["each"]]):
                same_place = replace(row, file=other.file, words=other.words)
                yield self.fill(column["heading"], same_place), self.fill(column["cell"], same_place)

    def _picture(self, picture: dict[str, Any], row: Row) -> str:
        return f"![{self.fill(picture['about'], row)}]({picture['file']})"

    def env(self, env: dict[str, Any]) -> str:
        if "not_yet" in env and not all(map(is_there, files_of(env))):
            return NOT_YET[self.language] + "\n\n```sh\n" + "\n".join(env["not_yet"]) + "\n```"
        rows = rows_of(env)
        parts = [self._picture(env["picture"], rows[0])] if "picture" in env else []
        parts += [self.fill(env["caption"], Row(rows[0].file))] if "caption" in env else []
        if "columns" in env:
            cells = [[(head, cell.replace("|", "\\|")) for head, cell in self.columns(env, row)] for row in rows]
            lines = [[heading for heading, _ in cells[0]], ["---" for _ in cells[0]]]
            lines += [[cell for _, cell in line] for line in cells]
            parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
        if "note" in env:
            parts.append(self.fill(env["note"], Row(rows[0].file)))
        if env.get("commands", True):
            parts.append(commands_of(list(self.used)))
        return "\n\n".join(parts)


def commands_of(files: list[str]) -> str:
    """All commands behind a table, folded, under the version that ran them."""
    lines: dict[str, dict[str, None]] = {}
    for file in files:
        lines.setdefault(read(file)["version"], {}).update(dict.fromkeys(read(file)["commands"]))
    said = "\n".join("\n".join([f"# hopplus {version}", *commands]) for version, commands in sorted(lines.items()))
    return f"<details><summary>Commands</summary>\n\n```sh\n{said}\n```\n\n</details>"


def filled(text: str, page: str) -> str:
    """A page with every table between its markers written anew."""
    for name in re.findall(r"<!-- results:(\w+) -->", text):
        if page not in ENVS[name]["pages"]:
            raise SystemExit(f"{page} shows the table {name}, which results/tables.toml does not put there")
    for name, env in ENVS.items():
        if page in env["pages"]:
            opening, closing = f"<!-- results:{name} -->", f"<!-- /results:{name} -->"
            if text.count(opening) != 1 or text.count(closing) != 1:
                raise SystemExit(f"{page} must hold {opening} and {closing} once")
            before, rest = text.split(opening)
            written = Writer("zh" if page.endswith(".zh-CN.md") else "en").env(env)
            text = f"{before}{opening}\n{written}\n{closing}{rest.split(closing)[1]}"
    return text


def main() -> int:
    check = "--check" in sys.argv
    stale = []
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        before = path.read_text()
        after = filled(before, path.relative_to(ROOT).as_posix())
        if after != before:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(after)
    print(f"{'stale' if check else 'written'}: {', '.join(stale)}" if stale else "all tables are up to date")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
