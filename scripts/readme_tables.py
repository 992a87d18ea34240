"""Write the tables of both READMEs from `results/*.json`; with `--check`, only tell whether they are up to date."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
READMES = {"README.md": "en", "README.zh-CN.md": "zh"}


def fairness(result: dict[str, Any], language: str) -> str:
    """Mean return of each seat under random play."""
    title = {
        "en": "Is the game fair? {episodes:,} episodes of random play, 99.9% intervals; Page's test: p = {p:.2f}.",
        "zh": "博弈公平吗？{episodes:,} 局随机对局，99.9% 区间；按座位的趋势（Page 检验，双向）：p = {p:.2f}。",
    }[language]
    heads = {"en": ("seat", "mean return", "over the mean of all"), "zh": ("座位", "平均回报", "高出全体均值")}[
        language
    ]
    fair = result["fairness"]
    rows = [
        (f"player_{seat}", _interval(returned, ".4f"), _interval(over, "+.4f"))
        for seat, (returned, over) in enumerate(zip(fair["returns"], fair["advantages"], strict=True), start=1)
    ]
    return title.format(episodes=fair["episodes"], p=fair["trend"]["p_value"]) + "\n\n" + _table(heads, rows)


def games(result: dict[str, Any], language: str) -> str:
    """Speed against a bare program and against what people would use instead."""
    title = {
        "en": "How fast? 8x8 stag hunt, 4 seats, random legal actions, all views built, {envs:,} tables, 2 CPU cores.",
        "zh": "有多快？8x8 猎鹿，4 个座位，随机合法动作，为每个座位构造视角，{envs:,} 张桌子，两个 CPU 核。",
    }[language]
    heads = {
        "en": ("program", "env steps/s", "agent steps/s", "hopplus is, in agent steps/s"),
        "zh": ("程序", "环境步/秒", "智能体步/秒", "hopplus 是它的（按智能体步）"),
    }[language]
    times = {"en": "{:.2f} x", "zh": "{:.2f} 倍"}[language]
    rates = {name: _largest(program) * program["agents"] for name, program in result["programs"].items()}
    rows = [
        (name, f"{_largest(program):,.0f}", f"{rates[name]:,.0f}", times.format(rates["hopplus"] / rates[name]))
        for name, program in result["programs"].items()
    ]
    return title.format(envs=4096) + "\n\n" + _table(heads, rows)


def _largest(program: dict[str, Any]) -> float:
    """Env steps/s with the most tables that the program was run with."""
    rates = program["env_steps_per_second"]
    return rates[max(rates, key=int)]


def scaling(result: dict[str, Any], language: str) -> str:
    """What more seats cost."""
    title = {
        "en": "What more seats cost: 16x16 board, as many hares as players. The views are the planes of all seats.",
        "zh": "座位越多代价多大：16x16 棋盘，兔子与玩家一样多。视角指所有座位的平面。",
    }[language]
    heads = {
        "en": ("seats", "env steps/s", "agent steps/s", "view bytes/s", "bytes of a state", "bytes of its views"),
        "zh": ("座位", "环境步/秒", "智能体步/秒", "视角字节/秒", "状态字节", "视角字节"),
    }[language]
    columns = ("seats", "env_steps_per_second", "agent_steps_per_second", "view_bytes_per_second", "state", "view")
    rows = [tuple(f"{row[column]:,.0f}" for column in columns) for row in result["scaling"]]
    return title + "\n\n" + _table(heads, rows)


TABLES: dict[str, tuple[str, Callable[[dict[str, Any], str], str]]] = {
    "fairness": ("fairness", fairness),
    "games": ("games", games),
    "scaling": ("games", scaling),
}
"""By the name of its place in the README: the file of results, and how its table is made."""


def _interval(interval: dict[str, float], form: str) -> str:
    return f"{interval['estimate']:{form}} ({interval['low']:{form}} to {interval['high']:{form}})"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def filled(text: str, language: str) -> str:
    """A README with every table written anew."""
    for name, (file_name, table) in TABLES.items():
        result = json.loads((ROOT / "results" / f"{file_name}.json").read_text())
        source = f"`{result['command']}` (hopplus {result['version']})"
        opening, closing = f"<!-- results:{name} -->", f"<!-- /results:{name} -->"
        before, rest = text.split(opening)
        _, after = rest.split(closing)
        text = f"{before}{opening}\n{table(result, language)}\n\n{source}\n{closing}{after}"
    return text


def main() -> int:
    stale = []
    for name, language in READMES.items():
        path = ROOT / name
        before = path.read_text()
        after = filled(before, language)
        if after != before:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(after)
    print(
        f"{'stale' if '--check' in sys.argv else 'written'}: {', '.join(stale)}"
        if stale
        else "all tables are up to date"
    )
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
