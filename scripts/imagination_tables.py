"""The tables of the learned world and of imagined play, from `results/*.json`."""

from collections.abc import Callable

from table_parts import commands_of, lines_of, read


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


TABLES: dict[str, Callable[[str], str]] = {
    "world": world,
    "imagination": imagination,
}
