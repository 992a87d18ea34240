"""The tables of planning, adaptation and cross-play, from `results/*.json`."""

from collections.abc import Callable

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


TABLES: dict[str, Callable[[str], str]] = {
    "crossplay_imagination": crossplay("crossplay_imagination"),
}
