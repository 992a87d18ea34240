"""The tables of planning, adaptation and cross-play, from `results/*.json`."""

from collections.abc import Callable
from typing import Any

from table_parts import commands_of, lines_of, plus_minus, read, with_interval


def crossplay(name: str, labels: dict[str, str]) -> Callable[[str], str]:
    """Who gets what in the first seat among whom; run folders are called by their labels."""

    def table(language: str) -> str:
        result = read(name)
        title = {
            "en": "Mean return of the player on the left in the first seat, among the players above it in the others; {episodes:,} episodes for each pair of seeds, ± half the 95% interval over seeds. A run among its own kind meets other seeds than its own.",
            "zh": "左侧玩家坐第一个座位、其余座位为上方玩家时的平均回报；每对种子 {episodes:,} 局，± 种子间 95% 区间的一半。与同类同桌时，遇到的是其他种子。",
        }[language].format(**result)
        head = {"en": "first seat", "zh": "第一个座位"}[language]
        players = [labels.get(player, player) for player in result["players"]]
        rows = [
            (player, *(plus_minus(cell) for cell in row))
            for player, row in zip(players, result["returns"], strict=True)
        ]
        return f"{title}\n\n{lines_of((head, *players), rows)}\n\n{commands_of(name)}"

    return table


SAMPLE_EFFICIENCY_RUNS = {
    "hop_plus-10": "hop_plus",
    "ppo-16-tables-10": "ppo",
    "ppo-16-tables-four-times-as-long-10": "ppo, four times as long",
}
CROSSPLAY_RUNS = {f"{agent}-4x4": agent for agent in ("ppo", "omg", "hop", "hop_plus")}
COMPANY = {
    "4x4": {
        "ppo": "series_4x4_ppo",
        "omg": "series_4x4_omg",
        "direct_om": "series_4x4_direct_om",
        "hop": "series_4x4_hop",
        "hop, pretrained": "series_4x4_hop_pretrained",
        "hop, from hop_plus, pretrained": "series_4x4_hop_begun",
        "hop_plus": "series_4x4_hop_plus",
        "hop_plus, one_step": "series_4x4_hop_plus_one_step",
        "hop_plus_search": "series_4x4_hop_plus_search",
    },
    "8x8": {
        "ppo": "series_8x8_ppo",
        "omg": "series_8x8_omg",
        "direct_om": "series_8x8_direct_om",
        "direct_om, from omg": "series_8x8_direct_om_begun",
        "hop_plus, from omg": "series_8x8_hop_plus",
        "hop_plus, one_step": "series_8x8_hop_plus_one_step",
        "hop_plus_search": "series_8x8_hop_plus_search",
        "hop_plus, pretrained": "series_8x8_hop_plus_pretrained",
        "hop_plus, one_step, pretrained": "series_8x8_hop_plus_one_step_pretrained",
        "hop_plus_search, pretrained": "series_8x8_hop_plus_search_pretrained",
        "hop, from hop_plus": "series_8x8_hop_own",
        "hop, from hop_plus, pretrained": "series_8x8_hop",
    },
}
"""By board and agent: frozen agents among every line-up, in series of episodes."""
FROM_EPISODE = 5
"""Results count from this episode of a series on."""


def series(board: str) -> Callable[[str], str]:
    """Frozen agents, normalised, with every line-up of four scripts; who has met its co-players some times."""

    def table(language: str) -> str:
        results = {agent: read(name) for agent, name in COMPANY[board].items()}
        first = next(iter(results.values()))
        patient = {"en": ", P patient_stag(3)", "zh": "，P patient_stag(3)"}[language]
        title = {
            "en": "Adaptation on {board}, {length} episodes in a row with the same line-up (N nearest_stag, H nearest_hare, R random{patient}), {seeds} seeds: normalised return from the {start}th episode on, 0 being uniform legal play and 1 the oracle. An agent that plans plays fewer episodes, so that more of its spread is chance.",
            "zh": "{board} 上的适应：与同一组同桌连续 {length} 局（N nearest_stag，H nearest_hare，R random{patient}），{seeds} 个种子；第 {start} 局起的归一化回报，0 为均匀随机合法动作，1 为最优应对。做规划的智能体局数较少，其起伏更多出于偶然。",
        }[language].format(
            board=board,
            length=first["series"],
            seeds=first["seeds"],
            start=FROM_EPISODE,
            patient=patient if any("P" in row["lineup"] for row in first["lineups"]) else "",
        )
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


def series_summary(board: str) -> Callable[[str], str]:
    """The same in a line for each agent."""

    def table(language: str) -> str:
        results = {agent: read(name) for agent, name in COMPANY[board].items()}
        first = next(iter(results.values()))
        title = {
            "en": "How near to the best response, among co-players never chosen? Frozen agents on {board}, all {lineups} line-ups of three out of nearest_stag, nearest_hare, random and patient_stag(3), {length} episodes in a row, {seeds} seeds. Normalised: 0 is uniform legal play, 1 the oracle.",
            "zh": "与并非自己挑选的同桌相处，离最优应对有多近？{board} 上冻结的智能体，由 nearest_stag、nearest_hare、random、patient_stag(3) 任取三个组成的全部 {lineups} 组同桌，连续 {length} 局，{seeds} 个种子。归一化：0 为均匀随机合法动作，1 为最优应对。",
        }[language].format(board=board, lineups=len(first["lineups"]), length=first["series"], seeds=first["seeds"])
        heads = {
            "en": ("agent", f"from episode {FROM_EPISODE}", "first episode", "lowest line-up", "has learned from"),
            "zh": ("智能体", f"第 {FROM_EPISODE} 局起", "第一局", "最低的一组", "学自"),
        }[language]
        rows = []
        for agent, found in results.items():
            late = [_late(row) for row in found["lineups"]]
            begin = found["by_episode"][0]["sampled"]["estimate"]
            rows.append((agent, f"{sum(late) / len(late):.2f}", f"{begin:.2f}", f"{min(late):.2f}", found["saw"]))
        return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*COMPANY[board].values())}"

    return table


def _late(row: dict[str, Any]) -> float:
    """The mean over the episodes that count."""
    counted = [one["sampled"]["estimate"] for one in row["by_episode"][FROM_EPISODE - 1 :]]
    return sum(counted) / len(counted)


def known_others(*names: str) -> Callable[[str], str]:
    """Search with the true game and the true co-players, beside the oracle of each line-up."""

    def table(language: str) -> str:
        results = [read(name) for name in names]
        title = {
            "en": "Search in the true game with the true co-players: mean return over the oracle's, {episodes} episodes for each of {seeds} seeds, 95% interval over seeds.",
            "zh": "在真实博弈中、已知同桌真实策略的搜索：平均回报与最优应对之比，{seeds} 个种子各 {episodes} 局，种子间 95% 区间。",
        }[language].format(**results[0])
        heads = {
            "en": ("with", "oracle", "search", "over the oracle"),
            "zh": ("同桌", "最优应对", "搜索", "与最优应对之比"),
        }[language]
        rows = []
        for result in results:
            for row in result["lineups"]:
                found, oracle = row["greedy"], row["oracle"]
                ratio = {key: found[key] / oracle for key in ("estimate", "low", "high")}
                name = f"{row['lineup']}, {result['game'].rsplit('-', 1)[1]}"
                rows.append((name, f"{oracle:.2f}", f"{found['estimate']:.2f}", with_interval(ratio, ".2f")))
        return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*names)}"

    return table


LADDER = {
    "4x4": {
        "ladder_plain": {"en": "as it is", "zh": "原样"},
        "ladder_budget": {"en": "four times the simulations", "zh": "模拟次数乘以四"},
        "ladder_goals": {"en": "told what its co-players are after", "zh": "告知同桌的目标"},
        "ladder_others": {"en": "told exactly what they do", "zh": "告知同桌的真实策略"},
        "ladder_playout": {"en": "its critic asked 12 steps later", "zh": "推迟 12 步再问评论家"},
        "ladder_critic": {
            "en": "told what they do, and its critic asked 12 steps later",
            "zh": "告知真实策略，且推迟 12 步再问评论家",
        },
    },
    "8x8": {
        "ladder_8x8_policy": {"en": "none", "zh": "无"},
        "ladder_8x8_world": {"en": "in the world that it learned", "zh": "在学到的世界中"},
        "ladder_8x8_game": {"en": "in the true game", "zh": "在真实博弈中"},
        "ladder_8x8_budget": {
            "en": "in the true game, four times the simulations",
            "zh": "在真实博弈中，模拟次数乘以四",
        },
        "ladder_8x8_others": {
            "en": "in the true game, told exactly what they do",
            "zh": "在真实博弈中，告知同桌的真实策略",
        },
        "ladder_8x8_playout": {
            "en": "in the true game, its critic asked 16 steps later",
            "zh": "在真实博弈中，推迟 16 步再问评论家",
        },
    },
}
"""By board and result: which part of the agent is replaced by the truth."""
LADDER_AGENTS = {"4x4": "hop", "8x8": "hop_plus"}


def ladder(board: str) -> Callable[[str], str]:
    """Where regret comes from: one part after the other is replaced by the truth."""
    return lambda language: _ladder(board, language)


def _ladder(board: str, language: str) -> str:
    results = {name: read(name) for name in LADDER[board]}
    first = next(iter(results.values()))
    title = {
        "en": "Where does the regret of `{agent}` come from? Normalised return on {board} among the ten line-ups of NS, NH and random, {seeds} seeds.",
        "zh": "`{agent}` 的遗憾来自哪里？{board}，与 NS、NH、random 组成的十组同桌，{seeds} 个种子，归一化回报。",
    }[language].format(agent=LADDER_AGENTS[board], board=board, seeds=first["seeds"])
    hard = ("HHH", "HHR", "HRR", "RRR")
    heads = {
        "en": ("planning", "mean", *hard, "the other six", "episodes"),
        "zh": ("规划", "均值", *hard, "其余六组", "局数"),
    }[language]
    rows = []
    for name, result in results.items():
        acts = "greedy" if "--planning.kind" in result["command"] else "sampled"
        by_name = {row["lineup"]: row["normalised"][acts]["estimate"] for row in result["lineups"]}
        rest = [value for lineup, value in by_name.items() if lineup not in hard]
        means = (plus_minus(result["normalised"][acts]), *(f"{by_name[one]:.2f}" for one in hard))
        rows.append((LADDER[board][name][language], *means, f"{sum(rest) / len(rest):.2f}", f"{result['episodes']}"))
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*LADDER[board])}"


SELF_PLAY = {
    "4x4": {
        "ppo": "selfplay_4x4_ppo",
        "omg": "selfplay_4x4_omg",
        "direct_om": "selfplay_4x4_direct_om",
        "hop": "selfplay_4x4_hop",
        "hop_plus": "selfplay_4x4_hop_plus",
        "hop_plus, one_step": "selfplay_4x4_hop_plus_one_step",
    },
    "8x8": {
        "ppo": "ppo_8x8_shared",
        "omg": "omg_8x8_shared",
        "omg, hindsight goals": "selfplay_8x8_omg_hindsight",
        "direct_om": "selfplay_8x8_direct_om",
        "direct_om, from omg": "selfplay_8x8_direct_om_begun",
        "hop_plus": "hop_plus_8x8",
        "hop_plus, from omg": "selfplay_8x8_hop_plus_long",
        "hop_plus, one_step": "selfplay_8x8_hop_plus_one_step",
        "hop, from hop_plus": "selfplay_8x8_hop",
        "hop, without arenas": "selfplay_8x8_hop_no_arenas",
    },
}
"""By board and agent: what it gets among its own."""


def self_play(board: str) -> Callable[[str], str]:
    """Agents that plan, and those that do not, among their own."""
    return lambda language: _self_play(board, language)


def _self_play(board: str, language: str) -> str:
    title = {
        "en": "Self-play on {board}: mean return of the final agents as they act (those that plan take the best action; the others draw from their policies), 95% intervals over seeds.",
        "zh": "{board} 自我对弈：最终智能体按其行动方式的平均回报（做规划者取最优动作，其余按策略采样），种子间 95% 区间。",
    }[language].format(board=board)
    heads = {
        "en": (
            "agent",
            "seeds x steps",
            "return",
            "simulations a decision, at the table",
            "in training",
            "training, minutes",
            "episodes",
        ),
        "zh": ("智能体", "种子 x 步数", "回报", "每次决策的模拟次数：评测时", "训练时", "训练分钟数", "局数"),
    }[language]
    rows = []
    for agent, name in SELF_PLAY[board].items():
        found = read(name)
        plans = "--planning.kind" in found["command"]
        rows.append(
            (
                agent,
                f"{found['seeds']} x {found['env_steps']:,}",
                with_interval(found["interval_greedy" if plans else "interval"], ".3f"),
                _simulations(found["command"]),
                "2 x 16" if agent.startswith(("hop,", "direct_om")) or agent == "hop" else "-",
                f"{found['training_seconds'] / 60:.0f}",
                f"{found['episodes']:,}",
            )
        )
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*SELF_PLAY[board].values())}"


def _simulations(command: str) -> str:
    """As in 4 x 32, from the flags."""
    words = command.split()
    flag = lambda name: words[words.index(f"--planning.{name}") + 1] if f"--planning.{name}" in words else None  # noqa: E731
    kind = flag("kind")
    if kind is None:
        return "-"
    return f"{flag('trees')} draws" if kind == "one_step" else f"{flag('trees')} x {flag('simulations')}"


def rise_and_fall(language: str) -> str:
    """Runs that learned from search: the last tenth of training beside the best."""
    result = read("rise_and_fall")
    title = {
        "en": "Do runs that learn from search rise and then fall? Mean return in training, all seeds: the best tenth of the updates and the last.",
        "zh": "从搜索中学习的训练会先升后降吗？训练中的平均回报，所有种子：最好的十分之一次更新与最后的十分之一。",
    }[language]
    heads = {
        "en": ("run", "seeds x steps", "best tenth", "ends after", "last tenth", "last over best"),
        "zh": ("运行", "种子 x 步数", "最好的十分之一", "止于", "最后的十分之一", "两者之比"),
    }[language]
    rows = [
        (
            one["run"],
            f"{one['seeds']} x {one['env_steps']:,}",
            f"{one['best']:.3f}",
            f"{one['best_at']:,}",
            f"{one['last']:.3f}",
            f"{one['last_over_best']:.3f}",
        )
        for one in result["runs"]
    ]
    trained = "  \n".join(f"`{one['trained_by']}`" for one in result["runs"])
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{trained}  \n{commands_of('rise_and_fall')}"


def search(language: str) -> str:
    """How fast a search is, and where its time goes."""
    result = read("search")
    title = {
        "en": "How fast is search? Simulations a second, 32 tables x 4 trees x 200 simulations, 2 CPU cores.",
        "zh": "搜索有多快？每秒模拟次数，32 张桌子 x 4 棵树 x 200 次模拟，两个 CPU 核。",
    }[language]
    heads = {"en": ("program", "simulations/s", "hopplus is"), "zh": ("程序", "模拟次数/秒", "hopplus 是它的")}[
        language
    ]
    times = {"en": "{:.2f} x", "zh": "{:.2f} 倍"}[language]
    rows = []
    for game, found in result["games"].items():
        rates, ratios = found["simulations_per_second"], found["times_as_fast"]
        rows += [(f"{name}, {game}", f"{rate:,.0f}", times.format(ratios[name])) for name, rate in rates.items()]
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('search')}"


def search_costs(language: str) -> str:
    """What a decision costs, and the share of each phase."""
    result = read("search")
    games = list(result["games"])
    head = {"en": "one decision of one seat, milliseconds", "zh": "一个座位一次决策，毫秒"}[language]
    costs = {game: found["milliseconds"] for game, found in result["games"].items()}
    rows = [(name, *(f"{costs[game][name]:.2f}" for game in games)) for name in costs[games[0]]]
    phase = {"en": "share of a search's time", "zh": "搜索时间的占比"}[language]
    shares = {(agent, game): of for game, found in result["games"].items() for agent, of in found["phases"].items()}
    lines = [(name, *(f"{of[name]:.0%}" for of in shares.values())) for name in next(iter(shares.values()))]
    first = lines_of((head, *games), rows)
    second = lines_of((phase, *(f"{agent}, {game}" for agent, game in shares)), lines)
    return f"{first}\n\n{second}\n\n{commands_of('search')}"


TABLES: dict[str, Callable[[str], str]] = {
    "crossplay_imagination": crossplay("crossplay_imagination", SAMPLE_EFFICIENCY_RUNS),
    "crossplay": crossplay("crossplay", CROSSPLAY_RUNS),
    "self_play_4x4": self_play("4x4"),
    "self_play_8x8": self_play("8x8"),
    "series_4x4": series("4x4"),
    "series_8x8": series("8x8"),
    "series_summary_4x4": series_summary("4x4"),
    "series_summary_8x8": series_summary("8x8"),
    "known_others": known_others("known_others_4x4", "known_others_8x8"),
    "ladder_4x4": ladder("4x4"),
    "ladder_8x8": ladder("8x8"),
    "rise_and_fall": rise_and_fall,
    "search": search,
    "search_costs": search_costs,
}
