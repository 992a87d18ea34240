"""The tables of planning, adaptation and cross-play, from `results/*.json`."""

from collections.abc import Callable
from typing import Any

from table_parts import commands_of, lines_of, plus_minus, read


def crossplay(name: str) -> Callable[[str], str]:
    """Who gets what in the first seat among whom."""

    def table(language: str) -> str:
        result = read(name)
        title = {
            "en": "Mean return of the player on the left in the first seat, among the players above it in the others; {episodes:,} episodes for each pair of seeds, ± half the 95% interval over seeds. A run among its own kind meets other seeds than its own.",
            "zh": "左侧玩家坐第一个座位、其余座位为上方玩家时的平均回报；每对种子 {episodes:,} 局，± 种子间 95% 区间的一半。与同类同桌时，遇到的是其他种子。",
        }[language].format(**result)
        head = {"en": "first seat", "zh": "第一个座位"}[language]
        rows = [
            (player, *(plus_minus(cell) for cell in row))
            for player, row in zip(result["players"], result["returns"], strict=True)
        ]
        return f"{title}\n\n{lines_of((head, *result['players']), rows)}\n\n{commands_of(name)}"

    return table


COMPANY = {
    "4x4": {
        "ppo": "series_4x4_ppo",
        "omg": "series_4x4_omg",
        "direct_om": "series_4x4_direct_om",
        "hop": "series_4x4_hop",
        "hop, pretrained": "series_4x4_hop_pretrained",
        "hop_plus": "series_4x4_hop_plus",
        "hop_plus, one_step": "series_4x4_hop_plus_one_step",
        "hop_plus_search": "series_4x4_hop_plus_search",
    },
}
"""By board and agent: frozen agents among the 20 line-ups, in series of episodes."""
FROM_EPISODE = 5
"""Results count from this episode of a series on."""


def series(board: str) -> Callable[[str], str]:
    """Frozen agents, normalised, with every line-up of four scripts; who has met its co-players some times."""

    def table(language: str) -> str:
        results = {agent: read(name) for agent, name in COMPANY[board].items()}
        first = next(iter(results.values()))
        title = {
            "en": "Adaptation on {board}, {length} episodes in a row with the same line-up (N nearest_stag, H nearest_hare, R random, P patient_stag(3)), {seeds} seeds: normalised return from the {start}th episode on, 0 being uniform legal play and 1 the oracle. An agent that plans plays fewer episodes, so that more of its spread is chance.",
            "zh": "{board} 上的适应：与同一组同桌连续 {length} 局（N nearest_stag，H nearest_hare，R random，P patient_stag(3)），{seeds} 个种子；第 {start} 局起的归一化回报，0 为均匀随机合法动作，1 为最优应对。做规划的智能体局数较少，其起伏更多出于偶然。",
        }[language].format(board=board, length=first["series"], seeds=first["seeds"], start=FROM_EPISODE)
        heads = {"en": ("with", "oracle", "random"), "zh": ("同桌", "最优应对", "随机")}[language]
        late = {agent: [_late(row) for row in found["lineups"]] for agent, found in results.items()}
        rows = [
            (
                row["lineup"],
                f"{row['oracle']:.2f}",
                f"{row['random']:.2f}",
                *(f"{late[agent][index]:.2f}" for agent in results),
            )
            for index, row in enumerate(first["lineups"])
        ]
        words = {
            "en": (
                "**mean**",
                "lowest line-up",
                "mean, first episode",
                "episodes for each seed and line-up",
                "minutes",
            ),
            "zh": ("**均值**", "最低的一组", "第一局的均值", "每个种子每组的局数", "分钟"),
        }[language]
        ends = [
            [f"**{sum(values) / len(values):.2f}**" for values in late.values()],
            [f"{min(values):.2f}" for values in late.values()],
            [f"{found['by_episode'][0]['sampled']['estimate']:.2f}" for found in results.values()],
            [f"{found['episodes']:,}" for found in results.values()],
            [f"{found['seconds'] / 60:.0f}" for found in results.values()],
        ]
        rows += [(word, "", "", *cells) for word, cells in zip(words, ends, strict=True)]
        saw = "; ".join(f"{agent}: {found['saw']}" for agent, found in results.items())
        seen = {"en": "What they have learned from: {saw}.", "zh": "它们学自：{saw}。"}[language].format(saw=saw)
        return f"{title}\n\n{lines_of((*heads, *results), rows)}\n\n{seen}\n\n{commands_of(*COMPANY[board].values())}"

    return table


def _late(row: dict[str, Any]) -> float:
    """The mean over the episodes that count."""
    counted = [one["sampled"]["estimate"] for one in row["by_episode"][FROM_EPISODE - 1 :]]
    return sum(counted) / len(counted)


TABLES: dict[str, Callable[[str], str]] = {
    "crossplay_imagination": crossplay("crossplay_imagination"),
    "crossplay": crossplay("crossplay"),
    "series_4x4": series("4x4"),
}
