"""Write the tables of the READMEs and docs from `results/*.json`; with `--check`, only tell whether they are up to date."""

import sys
from collections.abc import Callable
from typing import Any

import doctor_tables
import imagination_tables
import planning_tables
import scale_tables
from table_parts import ROOT, commands_of, lines_of, plus_minus, read, with_interval

PAGES = {
    "README.md": "en",
    "README.zh-CN.md": "zh",
    "docs/ppo.md": "en",
    "docs/speed.md": "en",
    "docs/others.md": "en",
    "docs/imagination.md": "en",
    "docs/planning.md": "en",
    "docs/scale.md": "en",
    "docs/studies.md": "en",
    "docs/doctor.md": "en",
    "docs/doctor_game.md": "en",
}


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
        (f"player_{seat}", with_interval(returned, ".4f"), with_interval(over, "+.4f"))
        for seat, (returned, over) in enumerate(zip(fair["returns"], fair["advantages"], strict=True), start=1)
    ]
    return title.format(episodes=fair["episodes"], p=fair["trend"]["p_value"]) + "\n\n" + lines_of(heads, rows)


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
    return title.format(envs=4096) + "\n\n" + lines_of(heads, rows)


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
    return title + "\n\n" + lines_of(heads, rows)


PPO_RUNS = ("stag_hunt_4x4", "stag_hunt_8x8", "stag_hunt_8x8_no_arenas", "snowdrift_8x8")
POSSIBLE = {"stag-hunt-4x4": "3.0 (2.897)", "stag-hunt-8x8": "3.0 (2.943)", "snowdrift-8x8": "30"}
"""The best mean return; in brackets that of players who look after themselves, by `benchmarks/stag_ties.py`."""


def ppo(language: str) -> str:
    """Returns of the final policies of every run that is shown."""
    heads = {
        "en": ("game", "training", "seeds x steps", "sampled", "greedy", "lowest seed, sampled / greedy", "possible"),
        "zh": ("博弈", "训练", "种子 x 步数", "采样", "贪心", "最低种子，采样 / 贪心", "上限"),
    }[language]
    title = {
        "en": "Does it learn? Mean return of the final policies, 10,000 episodes per seed on the whole board, 95% intervals "
        "over seeds. In brackets: what self-interested players can get.",
        "zh": "学得会吗？最终策略的平均回报，每个种子在完整棋盘上 10,000 局，区间为种子间 95% 区间。"
        "括号内：自利玩家所能得到的。",
    }[language]
    arenas = {"en": ("arenas", "whole board"), "zh": ("小场地课程", "完整棋盘")}[language]
    rows = []
    for name in PPO_RUNS:
        result = read(name)
        whole = "no_arenas" in name
        lowest = [min(seed[manner] for seed in result["per_seed"]) for manner in ("sampled", "greedy")]
        rows.append(
            (
                result["game"],
                arenas[whole],
                f"{result['seeds']} x {result['env_steps'] / 1e6:.1f} M",
                with_interval(result["interval"], ".3f"),
                with_interval(result["interval_greedy"], ".3f"),
                f"{lowest[0]:.3f} / {lowest[1]:.3f}",
                POSSIBLE[result["game"]],
            )
        )
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*PPO_RUNS)}"


def seats(language: str) -> str:
    """Returns and deeds of every seat: does training treat seats alike, and who free-rides?"""
    title = {
        "en": "Does training treat seats alike? Page's test over seeds, both directions: p = {stag:.2f} on 4x4 ({seeds} seeds), "
        "p = {snow:.2f} in snowdrift ({snow_seeds} seeds).",
        "zh": "训练对各座位一视同仁吗？按种子的 Page 检验，双向：4x4 p = {stag:.2f}（{seeds} 个种子），雪堆 p = {snow:.2f}（{snow_seeds} 个种子）。",
    }[language]
    heads = {
        "en": (
            "seat",
            "4x4 stag hunt, sampled",
            "ends with the stag, greedy",
            "snowdrift, sampled",
            "drifts removed, greedy",
        ),
        "zh": ("座位", "4x4 猎鹿，采样", "以鹿收场，贪心", "雪堆，采样", "清除的雪堆，贪心"),
    }[language]
    stag, snow = read("stag_hunt_4x4"), read("snowdrift_8x8")
    rows = [
        (
            one["seat"],
            with_interval(one["sampled"], ".3f"),
            with_interval(one["deeds_greedy"]["stag_rate"], ".3f"),
            with_interval(other["sampled"], ".2f"),
            with_interval(other["deeds_greedy"]["removals"], ".2f"),
        )
        for one, other in zip(stag["per_seat"], snow["per_seat"], strict=True)
    ]
    title = title.format(
        stag=stag["trend"]["p_value"], seeds=stag["seeds"], snow=snow["trend"]["p_value"], snow_seeds=snow["seeds"]
    )
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('stag_hunt_4x4', 'snowdrift_8x8')}"


def training(language: str) -> str:
    """Speed of training against a bare program and against PyTorch."""
    result = read("training")
    title = {
        "en": "How fast does training go? Four MLP(128, 128), 256 tables, one seed, 2 CPU cores. With {seeds} seeds side by side, each costs {cost:.2f} of a run of its own. PyTorch (CleanRL style) takes {sooner:.2f} times as long as hopplus to a mean return of {goal} on 4x4, our compilation included.",
        "zh": "训练有多快？四个 MLP(128, 128)，256 张桌子，一个种子，两个 CPU 核。{seeds} 个种子同跑时，每个种子的代价是单独一次运行的 {cost:.2f}。在 4x4 上达到平均回报 {goal}，PyTorch（CleanRL 风格）用时是 hopplus 的 {sooner:.2f} 倍（我们的编译时间计算在内）。",
    }[language]
    heads = {
        "en": ("program", "4x4, env steps/s", "hopplus is", "8x8, env steps/s", "hopplus is"),
        "zh": ("程序", "4x4，环境步/秒", "hopplus 是它的", "8x8，环境步/秒", "hopplus 是它的"),
    }[language]
    times = {"en": "{:.2f} x", "zh": "{:.2f} 倍"}[language]
    names = {
        "hopplus": "hopplus",
        "bare": "bare JAX loop",
        "bare_shared": "bare JAX loop, one shared board",
        "torch": "PyTorch, CleanRL style",
        "torch_stacked": "PyTorch, seats stacked",
    }
    rates, ratios = result["env_steps_per_second"], result["ratios"]
    rows = [
        (
            title_,
            *(
                cell
                for side in "48"
                for cell in (f"{rates[f'{name}_{side}']:,.0f}", times.format(ratios[f"{name}_{side}"]))
            ),
        )
        for name, title_ in names.items()
    ]
    reached = result["time_to_return"]
    title = title.format(
        seeds=result["seeds"],
        cost=result["seed_cost"],
        goal=reached["goal"],
        sooner=result["time_to_return_over_torch"],
    )
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('training')}"


def others(language: str) -> str:
    """Prediction of scripts from offline data, against the Bayes ceiling."""
    result = read("others")
    title = {
        "en": "How well are scripts predicted? {samples:,} offline samples of NS and NH players, {epochs} epochs, held-out episodes. Top-1 with the type known / inferred, and as a share of the Bayes ceiling. The notes' model: .6152, on padded data.",
        "zh": "对脚本玩家的预测有多准？{samples:,} 个离线样本（NS 与 NH 混合），{epochs} 个 epoch，在留出的局上评测。top-1：已知类型 / 推断类型，以及与贝叶斯上限之比。笔记中的模型：.6152（数据含填充）。",
    }[language]
    heads = {
        "en": (
            "game",
            "trained with",
            "top-1, known / inferred",
            "of the ceiling",
            "cross-entropy, inferred",
            "ECE, known / inferred",
        ),
        "zh": ("博弈", "训练方式", "top-1，已知 / 推断", "与上限之比", "交叉熵（推断）", "ECE，已知 / 推断"),
    }[language]
    rows = []
    for game, found in result["games"].items():
        for variant, scores in found["variants"].items():
            known, inferred = scores["known"], scores["inferred"]
            rows.append(
                (
                    game,
                    variant,
                    f"{known['top1']:.3f} / {inferred['top1']:.3f}",
                    f"{known['top1_over_ceiling']:.3f} / {inferred['top1_over_ceiling']:.3f}",
                    f"{inferred['cross_entropy']:.3f}",
                    f"{known['calibration']['ece']:.3f} / {inferred['calibration']['ece']:.3f}",
                )
            )
        first = found["variants"]["types"]
        ceilings = " / ".join(f"{first[how]['yardsticks']['ceiling']['top1']:.3f}" for how in ("known", "inferred"))
        rows.append((game, "*Bayes ceiling*", ceilings, "1 / 1", "", ""))
        for name in ("last_action", "marginal"):
            rows.append(
                (game, f"*{name.replace('_', ' ')}*", f"{first['known']['yardsticks'][name]['top1']:.3f}", "", "", "")
            )
    first = next(iter(result["games"].values()))
    belief = {
        "en": "Beliefs over the two types: KL(exact || learned) = {kl:.4f} nats in the mean; over 10 episodes with the same players the starting belief in the true type rises from .50 to {last:.2f}. Recall of hunts is {recall:.3f} of its ceiling or more.",
        "zh": "对两种类型的信念：平均 KL(精确 || 学到的) = {kl:.4f} nats；与同样的玩家连续 10 局之后，开局时对真实类型的信念从 .50 升到 {last:.2f}。两种狩猎动作的召回率不低于上限的 {recall:.3f}。",
    }[language].format(
        kl=result["belief_kl"], last=result["starting_belief_after_10"], recall=result["recall_over_ceiling"]
    )
    title = title.format(samples=first["samples"], epochs=result["epochs"])
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{belief}\n\n{commands_of('others')}"


def goal_losses(language: str) -> str:
    """Every term of the three losses of the prior, after the last epoch."""
    del language
    result = read("goal_losses")
    terms = ("goal/reconstruction", "goal/action", "goal/prior_kl", "goal/mismatch", "held_out/top1")
    heads = ("goals", "loss", "reconstruction, per cell", "action", "KL", "posterior's mismatch", "held-out top-1")
    rows = [
        (name, loss, *(f"{curve[-1][term]:.3f}" for term in terms))
        for name, curves in result["curves"].items()
        for loss, curve in curves.items()
    ]
    title = f"{result['samples']:,} samples of stag-hunt-4x4, {result['epochs']} epochs; every term in nats, also those that a loss leaves out."
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('goal_losses')}"


OMG_RUNS = {
    "omg_4x4_short": "16 dimensions",
    "omg_4x4_short_z8": "8 dimensions",
    "omg_4x4_short_symbols": "4 symbols",
    "omg_4x4": "16 dimensions",
    "omg_4x4_z8": "8 dimensions",
    "omg_4x4_symbols": "4 symbols",
}
"""By result file: the goals, as `benchmarks/agents.py` names them."""


def omg(language: str) -> str:
    """Agents with models of the others: return, cost, and how well they predict each other."""
    costs = read("agents")["time_over_ppo"]
    title = {
        "en": "Agents that model the others, self-play on 4x4, 10,000 episodes per seed. Prediction: top-1 over the ceiling E[max π], all pairs and seeds, from the middle of training to its end (mean / lowest), and of the final policies (lowest pair).",
        "zh": "对其他玩家建模的智能体，4x4 自我对弈，每个种子 10,000 局。预测：top-1 与上限 E[max π] 之比，所有玩家对与种子，自训练中段到结束（均值 / 最低），以及最终策略（最低的一对）。",
    }[language]
    heads = {
        "en": ("agent", "seeds x steps", "sampled", "greedy", "prediction in training", "final", "time, ppo being 1"),
        "zh": ("智能体", "种子 x 步数", "采样", "贪心", "训练中的预测", "最终", "耗时（ppo 为 1）"),
    }[language]
    rows = []
    for name, goals in OMG_RUNS.items():
        run, predicted = read(name), read(f"{name}_others")
        during = predicted["in_training"]
        rows.append(
            (
                f"omg, {goals}",
                f"{run['seeds']} x {run['env_steps'] / 1e6:.1f} M",
                with_interval(run["interval"], ".3f"),
                with_interval(run["interval_greedy"], ".3f"),
                f"{during['mean_ratio']:.3f} / {during['lowest_ratio']:.3f}",
                f"{min(pair['ratio'] for pair in predicted['pairs']):.3f}",
                f"{costs[f'omg, {goals}']:.2f}",
            )
        )
    used = read("omg_4x4_mixed")["use"]
    words = {
        "en": "Is it used? Beside nearest_stag, nearest_hare and random, replacing the inferred goals by those of another table moves the policy by {shuffled:.3f} (total variation) and changes {changed:.1%} of likeliest actions; replacing them by their mean, {mean:.3f} and {mean_changed:.1%}.",
        "zh": "用上了吗？与 nearest_stag、nearest_hare、random 同桌时，把推断出的目标换成另一张桌子的，策略移动 {shuffled:.3f}（全变差），{changed:.1%} 的最可能动作改变；换成均值则为 {mean:.3f} 和 {mean_changed:.1%}。",
    }[language].format(
        shuffled=used["shuffled"]["total_variation"],
        changed=used["shuffled"]["other_likeliest_action"],
        mean=used["mean"]["total_variation"],
        mean_changed=used["mean"]["other_likeliest_action"],
    )
    names = (source for name in OMG_RUNS for source in (name, f"{name}_others"))
    sources = commands_of(*names, "omg_4x4_mixed", "agents")
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{words}\n\n{sources}"


WITH_SCRIPTS = ("omg_4x4_with_nh", "omg_4x4_with_mixed", "omg_4x4_with_ns")


def with_scripts(language: str) -> str:
    """One learner among scripts: how well it predicts them, on line."""
    title = {
        "en": "One `omg` learner among three scripts on 4x4, {seeds} seeds: top-1 of its models over the ceiling, from the middle of training to its end (mean / lowest pair and seed), and at the end.",
        "zh": "4x4 上一个 `omg` 学习者与三个脚本同桌，{seeds} 个种子：其模型的 top-1 与上限之比，自训练中段到结束（均值 / 最低的一对与种子），以及训练结束时。",
    }[language]
    heads = {
        "en": ("with", "prediction in training", "at the end: top-1", "ceiling", "ratio, lowest pair", "ECE"),
        "zh": ("同桌", "训练中的预测", "结束时 top-1", "上限", "比值（最低的一对）", "ECE"),
    }[language]
    rows = []
    for name in WITH_SCRIPTS:
        found = read(name)
        during, score = found["in_training"], found["models"]["others"]
        rows.append(
            (
                found["co_players"].replace(",", ", "),
                f"{during['mean_ratio']:.3f} / {during['lowest_ratio']:.3f}",
                f"{score['top1']:.3f}",
                f"{score['yardsticks']['ceiling']['top1']:.3f}",
                f"{min(pair['ratio'] for pair in found['pairs']):.3f}",
                f"{score['calibration']['ece']:.3f}",
            )
        )
    title = title.format(seeds=read(WITH_SCRIPTS[0])["seeds"])
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*WITH_SCRIPTS)}"


ADAPTATION = {
    "4x4": {
        "ppo": "adaptation_4x4_ppo",
        "omg": "adaptation_4x4_omg",
        "ppo, shared": "adaptation_4x4_ppo_shared",
        "omg, shared": "adaptation_4x4_omg_shared",
        "omg, pretrained": "adaptation_4x4_omg_pretrained",
        "hop_plus": "adaptation_4x4_hop_plus",
        "hop_plus, marginals": "adaptation_4x4_hop_plus_marginals",
    },
    "8x8": {"ppo": "adaptation_8x8_ppo", "omg": "adaptation_8x8_omg"},
}


def adaptation(board: str) -> Callable[[str], str]:
    """Frozen agents with every line-up of three scripts, beside the best response to it."""

    def table(language: str) -> str:
        results = {agent: read(name) for agent, name in ADAPTATION[board].items()}
        first = next(iter(results.values()))
        title = {
            "en": "Adaptation on {board}: a frozen agent in one seat with scripts in the others (N nearest_stag, H nearest_hare, R random), {episodes:,} episodes, mean return (± half the 95% interval over seeds). Last line: normalised, 0 being uniform legal play and 1 the oracle.",
            "zh": "{board} 上的适应：冻结的智能体占一个座位，其余座位是脚本（N nearest_stag，H nearest_hare，R random），{episodes:,} 局，平均回报（± 种子间 95% 区间的一半）。末行：归一化，0 为均匀随机合法动作，1 为最优应对。",
        }[language].format(board=board, episodes=first["episodes"])
        heads = {
            "en": ("with", "oracle", "always NS", "always NH", "NS or NH by belief", "random"),
            "zh": ("同桌", "最优应对", "总是 NS", "总是 NH", "按信念选 NS 或 NH", "随机"),
        }[language]
        yardsticks = ("oracle", "nearest_stag", "nearest_hare", "by_belief", "random")
        rows = []
        for index, row in enumerate(first["lineups"]):
            agents = [plus_minus(found["lineups"][index]["sampled"]) for found in results.values()]
            rows.append((row["lineup"], *(f"{row[name]:.2f}" for name in yardsticks), *agents))
        means = [plus_minus(found["normalised"]["sampled"]) for found in results.values()]
        normalised = {"en": "**normalised**", "zh": "**归一化**"}[language]
        rows.append((normalised, *(f"{first['normalised'][name]:.2f}" for name in yardsticks), *means))
        saw = "; ".join(f"{agent}: {found['saw']}" for agent, found in results.items())
        seen = {"en": "What they have learned from: {saw}.", "zh": "它们学自：{saw}。"}[language].format(saw=saw)
        sources = commands_of(*ADAPTATION[board].values())
        return f"{title}\n\n{lines_of((*heads, *results), rows)}\n\n{seen}\n\n{sources}"

    return table


def _of_file(name: str, table: Callable[[dict[str, Any], str], str]) -> Callable[[str], str]:
    return lambda language: f"{table(read(name), language)}\n\n{commands_of(name)}"


TABLES: dict[str, Callable[[str], str]] = {
    "fairness": _of_file("fairness", fairness),
    "games": _of_file("games", games),
    "scaling": _of_file("games", scaling),
    "ppo": ppo,
    "seats": seats,
    "training": training,
    "others": others,
    "omg": omg,
    "goal_losses": goal_losses,
    "with_scripts": with_scripts,
    "adaptation_4x4": adaptation("4x4"),
    "adaptation_8x8": adaptation("8x8"),
    **imagination_tables.TABLES,
    **planning_tables.TABLES,
    **scale_tables.TABLES,
    **doctor_tables.TABLES,
}
"""By the name of its place in a page: how its table is made, in a language."""


def filled(text: str, language: str) -> str:
    """A page with every table that it has a place for written anew."""
    for name, table in TABLES.items():
        opening, closing = f"<!-- results:{name} -->", f"<!-- /results:{name} -->"
        if opening in text:
            before, rest = text.split(opening)
            _, after = rest.split(closing)
            text = f"{before}{opening}\n{table(language)}\n{closing}{after}"
    return text


def main() -> int:
    stale = []
    for name, language in PAGES.items():
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
