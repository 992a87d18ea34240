"""The tables of the learned world and of agents that imagine, from `results/*.json`."""

from collections.abc import Callable
from statistics import median

from table_parts import commands_of, lines_of, read, with_interval

RUNS = {
    "ppo_4x4": "ppo",
    "omg_4x4_short": "omg",
    "hop_plus_4x4": "hop_plus, hindsight goals",
    "hop_plus_4x4_z16": "hop_plus, 16 dimensions",
    "ppo_8x8": "ppo",
    "omg_8x8": "omg",
    "hop_plus_8x8": "hop_plus, hindsight goals",
    "hop_plus_8x8_z16": "hop_plus, 16 dimensions",
}
"""By result file: the agent."""


def hop_plus(language: str) -> str:
    """Self-play of agents that imagine, beside those that do not."""
    title = {
        "en": "Agents that imagine, beside those that do not: self-play, 10,000 episodes per seed, 95% intervals over seeds. Time is of training all seeds side by side on 2 CPU cores, without compiling.",
        "zh": "会想象的智能体与不会想象的：自我对弈，每个种子 10,000 局，区间为种子间 95% 区间。时间是在两个 CPU 核上同时训练全部种子所用，不含编译。",
    }[language]
    heads = {
        "en": ("game", "agent", "seeds x real steps", "sampled", "greedy", "minutes"),
        "zh": ("博弈", "智能体", "种子 x 真实步数", "采样", "贪心", "分钟"),
    }[language]
    rows = []
    for name, agent in RUNS.items():
        run = read(name)
        rows.append(
            (
                run["game"],
                agent,
                f"{run['seeds']} x {run['env_steps']:,}",
                with_interval(run["interval"], ".3f"),
                with_interval(run["interval_greedy"], ".3f"),
                f"{run['training_seconds'] / 60:.1f}",
            )
        )
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of(*RUNS)}"


def sample_efficiency(language: str) -> str:
    """Real steps until self-play pays."""
    result = read("sample_efficiency")
    title = {
        "en": "How many real steps does it take? Self-play on 4x4 to a mean return of {goal}, {seeds} seeds. `hop_plus` needs {times:.1f} times fewer ({low:.1f} to {high:.1f}, 95% bootstrap interval of the ratio of medians) than the best of `ppo`.",
        "zh": "需要多少真实步数？4x4 自我对弈达到平均回报 {goal}，{seeds} 个种子。`hop_plus` 所需步数是最好的 `ppo` 的 1/{times:.1f}（中位数之比的 95% 自助区间：{low:.1f} 到 {high:.1f} 倍）。",
    }[language]
    heads = {
        "en": ("agent", "median steps", "range over seeds", "seeds that never did", "final return"),
        "zh": ("智能体", "步数中位数", "种子间范围", "从未达到的种子", "最终回报"),
    }[language]
    rows = []
    for name, steps in result["steps"].items():
        reached = sorted(step for step in steps if step is not None)
        middle = median(float("inf") if step is None else step for step in steps)
        spread = f"{reached[0]:,.0f} to {reached[-1]:,.0f}" if reached else "-"
        never = str(len(steps) - len(reached))
        rows.append((name, f"{middle:,.0f}", spread, never, f"{result['final_return'][name]:.3f}"))
    low, high = result["interval"]
    seeds = len(next(iter(result["steps"].values())))
    title = title.format(goal=result["goal"], seeds=seeds, times=result["times_fewer"], low=low, high=high)
    by_return = result["unexplained"]
    ratios = [by_return["hop_plus"][each] / by_return[result["base"]][each] for each in by_return["hop_plus"]]
    words = {
        "en": "The critic is not poisoned: the variance of real returns that it leaves unexplained is {least:.2f} to {most:.2f} times that of `{base}`, at matched mean returns from {first} to {last}.",
        "zh": "评论家没有被毒害：在平均回报相同时（从 {first} 到 {last}），它对真实回报未解释的方差是 `{base}` 的 {least:.2f} 到 {most:.2f} 倍。",
    }[language].format(
        least=min(ratios),
        most=max(ratios),
        base=result["base"],
        first=next(iter(by_return["hop_plus"])).split()[0],
        last=list(by_return["hop_plus"])[-1].split()[-1],
    )
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{words}\n\n{commands_of('sample_efficiency')}"


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


def poisons(language: str) -> str:
    """What bad models do, with trust and without."""
    result = read("poisons")
    title = {
        "en": "What does a bad model do? `hop_plus` on 4x4 with one model spoilt from outside: return at the end of training over that of `ppo` ({ppo:.3f}), {seeds} seeds x {steps:,} steps.",
        "zh": "坏模型会怎样？4x4 上的 `hop_plus`，从外部破坏其中一个模型：训练结束时的回报与 `ppo`（{ppo:.3f}）之比，{seeds} 个种子 x {steps:,} 步。",
    }[language]
    heads = {
        "en": ("poison", "trust on", "distrusted (mean trust)", "trust off"),
        "zh": ("毒", "信任开", "不被信任者（平均信任）", "信任关"),
    }[language]
    base = result["ppo"]
    names = dict.fromkeys(name.rsplit(", ", 1)[0] for name in result["poisons"])
    share = lambda name, trust: f"{result['poisons'][f'{name}, {trust}']['over_ppo']:.3f}"  # noqa: E731
    rows = [
        (name, share(name, "trust"), result["poisons"][f"{name}, trust"]["distrusted"], share(name, "no trust"))
        for name in names
    ]
    title = title.format(ppo=sum(base) / len(base), seeds=len(base), steps=result["steps"])
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('poisons')}"


def imagination(language: str) -> str:
    """How fast imagined play is."""
    result = read("imagination")
    title = {
        "en": "How fast is imagined play? One learner, 256 tables, against its networks alone on the same batch, and against real play of all four seats.",
        "zh": "想象中的对局有多快？一个学习者，256 张桌子，与同一批数据上单独运行其网络相比，以及与四个座位的真实对局相比。",
    }[language]
    heads = {
        "en": ("game", "imagined steps/s", "over its networks alone", "over real play"),
        "zh": ("博弈", "想象步/秒", "与单独运行网络之比", "与真实对局之比"),
    }[language]
    rows = [
        (
            game,
            f"{found['steps_per_second']['imagined play']:,.0f}",
            f"{found['over_networks']:.2f}",
            f"{found['over_real']:.2f}",
        )
        for game, found in result["games"].items()
    ]
    return f"{title}\n\n{lines_of(heads, rows)}\n\n{commands_of('imagination')}"


TABLES: dict[str, Callable[[str], str]] = {
    "hop_plus": hop_plus,
    "sample_efficiency": sample_efficiency,
    "world": world,
    "poisons": poisons,
    "imagination": imagination,
}
