"""The tables of devices, hosts and studies, from `results/*.json`."""

from collections.abc import Callable

from table_parts import commands_of, lines_of, read, with_interval


def costs(language: str) -> str:
    """What a step of training costs."""
    result = read("scale")
    heads = {
        "en": ("training, one seed on one device", "microseconds per environment step", "over the first"),
        "zh": ("训练，一个种子，一个设备", "每环境步微秒数", "与第一行之比"),
    }[language]
    rows = [(name, f"{cost:,.0f}", f"{result['relative'][name]:.2f}") for name, cost in result["microseconds"].items()]
    return f"{lines_of(heads, rows)}\n\n{commands_of('scale')}"


def weak_scaling(language: str) -> str:
    """Two devices do twice the work of one."""
    found = read("scale")["weak_scaling"]
    heads = {"en": ("two devices instead of one, twice the work", "efficiency"), "zh": ("两个设备，两倍的活", "效率")}
    names = {"en": {"seeds": "along seeds", "envs": "along environments"}, "zh": {"seeds": "沿种子", "envs": "沿环境"}}
    rows = [(names[language][axis], f"{value:.2f}") for axis, value in found.items()]
    return f"{lines_of(heads[language], rows)}\n\n{commands_of('scale')}"


def study_overhead(language: str) -> str:
    """What a study costs beyond its trials."""
    result = read("study")
    heads = {
        "en": ("{trials} trials of {steps:,} steps", "wall-clock over by hand"),
        "zh": ("{trials} 次试验，各 {steps:,} 步", "耗时与手工之比"),
    }[language]
    names = {
        "en": ("as a study, all cores for each trial", "as a study, one core for each trial"),
        "zh": ("作为研究，每次试验用全部核", "作为研究，每次试验一个核"),
    }[language]
    rows = [(name, f"{result[key]:.2f}") for name, key in zip(names, ("overhead", "side_by_side"), strict=True)]
    return f"{lines_of((heads[0].format(**result), heads[1]), rows)}\n\n{commands_of('study')}"


def trivial(language: str) -> str:
    """Very many trials that do nothing."""
    result = read("study_trivial")
    heads = {
        "en": (
            "trials that do nothing",
            "seconds",
            "milliseconds each",
            "memory of the driver, after a tenth, at the end",
        ),
        "zh": ("什么都不做的试验", "秒", "每次毫秒", "驱动进程内存：十分之一时，结束时"),
    }[language]
    each = 1000 * result["seconds"] / result["trials"]
    memory = f"{result['megabytes'][0]:.0f} MB, {result['megabytes'][-1]:.0f} MB"
    rows = [(f"{result['trials']:,}", f"{result['seconds']:.0f}", f"{each:.1f}", memory)]
    return f"{lines_of(heads, rows)}\n\n{commands_of('study_trivial')}"


def notes(language: str) -> str:
    """The notes' study: what it answers."""
    result = read("notes")
    heads = {
        "en": ("question", "answer", "difference", "probability of improvement"),
        "zh": ("问题", "回答", "差", "改进的概率"),
    }[language]
    rows = [
        (
            found["question"]["ask"],
            found["verdict"],
            with_interval(found["difference"], ".3f"),
            with_interval(found["probability"], ".2f"),
        )
        for found in result["answers"]
    ]
    scores = {
        "en": ("variant", "seeds", "return, interquartile mean", "minutes"),
        "zh": ("变体", "种子", "回报，四分位均值", "分钟"),
    }[language]
    lines = [
        (one["name"], str(one["seeds"]), with_interval(one["score"], ".3f"), f"{one['seconds'] / 60:.1f}")
        for one in result["variants"]
    ]
    return f"{lines_of(heads, rows)}\n\n{lines_of(scores, lines)}\n\n{commands_of('notes')}"


TABLES: dict[str, Callable[[str], str]] = {
    "scale_costs": costs,
    "weak_scaling": weak_scaling,
    "study_overhead": study_overhead,
    "study_trivial": trivial,
    "notes": notes,
}
