"""The tables of the learned world and of imagined play, from `results/*.json`."""

from collections.abc import Callable
from typing import Any

from table_parts import commands_of, lines_of, read, with_interval


def world(language: str) -> str:
    """How well worlds are learned offline."""
    result = read("world")
    title = {
        "en": "How well is the world learned? Held-out episodes of random play, mixed scripts and self-play together. Recall is of rewards, with who leaves; the last column counts outcomes that the rules cannot bring about.",
        "zh": "世界学得多准？留出的随机对局、混合脚本与自我对弈合计。召回率指奖励（连同谁离场）；末列为规则不可能产生的结果数。",
    }[language]
    heads = {
        "en": ("game", "transitions", "model", "exact next state", "obs. MSE", "PSNR", "reward MSE", "recall", "5 steps, exact", "impossible"),
        "zh": ("博弈", "转移数", "模型", "下一状态完全正确", "观测 MSE", "PSNR", "奖励 MSE", "召回率", "五步全对", "不可能的结果"),
    }[language]  # fmt: skip
    rows, drawn = [], []
    for game, found in result["games"].items():
        for model, by_group in found["scores"].items():
            one = by_group["all"]
            rows.append(
                (
                    game,
                    f"{found['transitions']:,}",
                    model,
                    f"{one['exact_next_state']:.3%}",
                    f"{one['observation_mse']:.1e}",
                    f"{one['psnr']:.1f}",
                    f"{one['reward_mse']:.1e}",
                    f"{one['paid_recall']:.4f}",
                    f"{one['open_loop_exact']:.4f}",
                    f"{sum(one['impossible'].values()):,} / {one['transitions']:,}",
                )
            )
        drawn.append((sum(found["impossible_sampled"].values()), found["sampled"]))
    count, total = (sum(part) for part in zip(*drawn, strict=True))
    words = {
        "en": "Drawn from the world, not its likeliest outcome: {count} impossible ones among {total:,}.",
        "zh": "从世界模型中抽样（而非取最可能的结果）：{total:,} 个中有 {count} 个不可能。",
    }[language].format(count=count, total=total)
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{words}\n\n{commands_of('world')}"


def imagination(language: str) -> str:
    """How fast imagined play is."""
    names = ("imagination", "imagination_two_cores")
    title = {
        "en": "How fast is imagined play? One learner, 256 tables, on one core as learners have it, and where XLA may use two, against its networks alone on the same batch, and against real play of all four seats.",
        "zh": "想象中的对局有多快？一个学习者，256 张桌子，用一个核（学习者通常如此）以及允许 XLA 用两个核，与同一批数据上单独运行其网络相比，以及与四个座位的真实对局相比。",
    }[language]
    heads = {
        "en": ("game", "cores", "imagined steps/s", "over its networks alone", "over real play"),
        "zh": ("博弈", "核", "想象步/秒", "与单独运行网络之比", "与真实对局之比"),
    }[language]
    rows = [
        (
            game,
            str(result["cores"]),
            f"{found['steps_per_second']['imagined play']:,.0f}",
            f"{found['over_networks']:.2f}",
            f"{found['over_real']:.2f}",
        )
        for result in map(read, names)
        for game, found in result["games"].items()
    ]
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*names)}"


def sample_efficiency(language: str) -> str:
    """Real steps to the goal, the critics, and what takes the agent its time."""
    result = read("sample_efficiency")
    title = {
        "en": "How many real steps to a mean return of {goal} on 4x4? {seeds} seeds each, seats share parameters. Final: the last tenth of the run, with the 95% interval over seeds. Unexplained: 1 - explained variance of the critic on real play, where the mean return was in that range.",
        "zh": "在 4x4 上达到平均回报 {goal} 需要多少真实步？各 {seeds} 个种子，座位共享参数。末段：训练最后十分之一，附种子间 95% 区间。未解释：平均回报处于该区间时，评论家在真实对局上的 1 − 解释方差。",
    }[language].format(**result)
    ranges = list(result["unexplained"][result["agent"]])[1:]
    said = {"en": "unexplained, {} to {}", "zh": "未解释，{}–{}"}[language]
    heads = {
        "en": ("agent", "median steps", "range", "never", "final return", "seconds"),
        "zh": ("智能体", "步数中位数", "范围", "从未达到", "末段回报", "秒"),
    }[language]
    rows = []
    for name, steps in result["steps"].items():
        known = sorted(step for step in steps if step is not None)
        never = len(steps) - len(known)
        in_order = [*known, *[float("inf")] * never]
        middle = (in_order[(len(steps) - 1) // 2] + in_order[len(steps) // 2]) / 2
        rows.append(
            (
                name,
                "-" if middle == float("inf") else f"{middle:,.0f}",
                f"{known[0]:,.0f} - {known[-1]:,.0f}",
                f"{never} / {len(steps)}",
                with_interval(result["final_return"][name], ".3f"),
                f"{result['seconds'][name]:,.0f}",
                *(f"{result['unexplained'][name][each]:.2f}" for each in ranges),
            )
        )
    ratio = result["times_fewer"]
    verdict = {
        "en": "`{agent}` needs {estimate:.1f} times fewer ({low:.1f} to {high:.1f}) than the quickest of them, {base}.",
        "zh": "`{agent}` 所需步数是其中最快者（{base}）的 1/{estimate:.1f}（{low:.1f} 至 {high:.1f}）。",
    }[language].format(agent=result["agent"], base=result["base"], **ratio)
    heads = (*heads, *(said.format(*each.split(" to ")) for each in ranges))
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{verdict}\n\n{commands_of('sample_efficiency')}"


def course(language: str) -> str:
    """What takes hop_plus its time."""
    result = read("sample_efficiency")
    heads = {
        "en": ("real steps", "return", "trust: board", "rewards", "ends", "others", "weight of imagined play"),
        "zh": ("真实步数", "回报", "信任：棋盘", "奖励", "终止", "他人", "想象数据的权重"),
    }[language]
    rows = [
        (f"{one['steps']:,}", *(f"{value:.2f}" for name, value in one.items() if name != "steps"))
        for one in result["course"]
    ]
    return f"{lines_of(heads, rows)}\n\n{commands_of('sample_efficiency')}"


POISONS = {
    "none": "没有",
    "rewards times 5": "奖励乘以 5",
    "no end": "从不终止",
    "random co-players": "随机的他人模型",
    "a world of 100 transitions": "只用 100 个转移训练的世界",
}
TRUST = {"trust": {"en": "on", "zh": "开"}, "no trust": {"en": "off", "zh": "关"}}


def poisons(language: str) -> str:
    """What bad models do to an agent that imagines."""
    result = read("poisons")
    title = {
        "en": "What does a bad model do? `hop_plus` on 4x4, as much imagined play as real, {steps:,} steps, {seeds} seeds, with trust and without. Unexplained: 1 - explained variance of the critic on real play, second half of the run. Distrusted: models whose mean trust then was below .9.",
        "zh": "坏模型会造成什么？4x4 上的 `hop_plus`，想象数据与真实数据各半，{steps:,} 步，{seeds} 个种子，开启与关闭信任。未解释：训练后半段评论家在真实对局上的 1 − 解释方差。不被信任：此间平均信任低于 0.9 的模型。",
    }[language].format(**result)
    heads = {
        "en": ("poison", "trust", "final return", "over `ppo`'s", "steps to 2.8", "unexplained", "distrusted"),
        "zh": ("毒", "信任", "末段回报", "与 `ppo` 之比", "达到 2.8 的步数", "未解释", "不被信任"),
    }[language]
    never = {"en": "never", "zh": "从未"}[language]

    def cells(one: dict[str, Any]) -> tuple[str, ...]:
        steps = one["steps_to_goal"]
        return (
            f"{sum(one['returns']) / len(one['returns']):.3f}",
            f"{one.get('over_ppo', 1.0):.3f}",
            never if steps is None else f"{steps:,.0f}",
            f"{one['unexplained']:.2f}",
            one["distrusted"] or "",
        )

    rows = [("`ppo`", "", *cells(result["ppo"]))]
    for name, one in result["poisons"].items():
        poison, trust = name.rsplit(", ", 1)
        rows.append((poison if language == "en" else POISONS[poison], TRUST[trust][language], *cells(one)))
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('poisons')}"


HOP_PLUS = {
    "4x4": {
        "ppo": "ppo_4x4_short",
        "omg": "omg_4x4_short",
        "hop_plus, hindsight goals": "hop_plus_4x4_short",
        "hop_plus, goal vectors": "hop_plus_4x4_z16",
        "hop_plus, as in the table of adaptation": "hop_plus_4x4",
    },
    "8x8": {
        "ppo": "ppo_8x8_shared",
        "omg": "omg_8x8_shared",
        "hop_plus, hindsight goals": "hop_plus_8x8",
        "hop_plus, goal vectors": "hop_plus_8x8_z16",
    },
}


def hop_plus(language: str) -> str:
    """Self-play of agents that imagine, beside those that do not."""
    title = {
        "en": "Self-play, mean return with the 95% interval over seeds, 2,000 episodes for each (10,000 for `omg` and the last on 4x4). Seconds: training of all seeds on two cores that had other work to do, without compiling.",
        "zh": "自我对弈，平均回报附种子间 95% 区间，各 2,000 局（4x4 上的 `omg` 与最后一行为 10,000 局）。秒：在两个同时忙于其他工作的核上训练全部种子的时间，不含编译。",
    }[language]
    heads = {
        "en": ("board", "agent", "seeds", "real steps", "return", "seconds"),
        "zh": ("棋盘", "智能体", "种子", "真实步数", "回报", "秒"),
    }[language]
    rows = []
    for board, agents in HOP_PLUS.items():
        for agent, name in agents.items():
            found = read(name)
            rows.append(
                (
                    board,
                    agent,
                    str(found["seeds"]),
                    f"{found['env_steps']:,}",
                    with_interval(found["interval"], ".3f"),
                    f"{found['training_seconds']:,.0f}",
                )
            )
    names = [name for agents in HOP_PLUS.values() for name in agents.values()]
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*names)}"


TABLES: dict[str, Callable[[str], str]] = {
    "world": world,
    "imagination": imagination,
    "sample_efficiency": sample_efficiency,
    "course": course,
    "poisons": poisons,
    "hop_plus": hop_plus,
}
