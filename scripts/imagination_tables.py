"""The tables of the learned world and of imagined play, from `results/*.json`."""

from collections.abc import Callable

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


TABLES: dict[str, Callable[[str], str]] = {
    "world": world,
    "imagination": imagination,
    "sample_efficiency": sample_efficiency,
    "course": course,
}
