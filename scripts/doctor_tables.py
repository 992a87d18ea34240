"""The tables of the doctor's pages, from `results/*.json`."""

from collections.abc import Callable

from table_parts import commands_of, lines_of, read


def power(language: str) -> str:
    """How large an advantage is found."""
    result = read("power")
    heads = {
        "en": ("game, time for play", "episodes", "planted: {}"),
        "zh": ("博弈，对局时间", "局数", "植入：{}"),
    }[language]
    seconds = {"en": "{} s", "zh": "{} 秒"}[language]
    lines = [
        (f"{name}, {seconds.format(budget)}", one)
        for name, game in result["games"].items()
        for budget, one in game["budgets"].items()
    ]
    first, *more = (_percent(float(share)) for share in lines[0][1]["found"])
    rows = [(name, f"{one['episodes']:,}", *(f"{found:.2f}" for found in one["found"].values())) for name, one in lines]
    return f"{lines_of((*heads[:2], heads[2].format(first), *more), rows)}\n\n{commands_of('power')}"


def detectable(language: str) -> str:
    """The same in a sentence."""
    result = read("power")
    words = {
        "en": "In {budget} seconds of play {name} ({episodes:,} episodes) shows an advantage of {share} of the mean return in at least 95 of 100 repeats.",
        "zh": "{budget} 秒对局内，{name}（{episodes:,} 局）至少在 100 次重复中的 95 次发现占平均回报 {share} 的优势。",
    }[language]
    return " ".join(
        words.format(budget=budget, name=name, episodes=one["episodes"], share=_percent(one["detectable"]))
        for name, game in result["games"].items()
        for budget, one in game["budgets"].items()
        if one["detectable"] is not None and budget == "60"
    )


def biased_envs(language: str) -> str:
    """Environments with and without a planted bias, and what the doctor says."""
    result = read("biased_envs")
    heads = {
        "en": ("environment, {} s", "bias planted", "verdict", "found by"),
        "zh": ("环境，{} 秒", "植入偏差", "结论", "由何发现"),
    }[language]
    yes, no = {"en": ("yes", "no"), "zh": ("是", "否")}[language]
    rows = [
        (one["env"], yes if one["planted"] else no, one["verdict"], ", ".join(one["found_by"]) or "-")
        for one in result["judged"]
    ]
    first = heads[0].format(f"{result['seconds']:g}")
    return f"{lines_of((first, *heads[1:]), rows)}\n\n{commands_of('biased_envs')}"


def summary(language: str) -> str:
    """Faults and false alarms in a sentence."""
    words = {
        "en": "Does the doctor find what is wrong, and only that? {faults_found} of {faults} faults are found and named; {clean_runs} runs without a fault: {false_alarms} with a suspicious verdict or worse, {false_broken} called broken.",
        "zh": "医生能找出问题、且不误报吗？{faults} 个故障中发现并指明 {faults_found} 个；{clean_runs} 次无故障的运行：{false_alarms} 次出现可疑或更差的结论，{false_broken} 次被判为损坏。",
    }[language]
    return f"{words.format(**read('doctor'))}\n\n{commands_of('doctor')}"


def faults(language: str) -> str:
    """Every fault, and what the doctor said."""
    heads = {
        "en": ("fault", "found", "question", "to blame", "what the doctor says", "seconds"),
        "zh": ("故障", "发现", "问题", "归咎于", "医生的话", "秒"),
    }[language]
    yes, no = {"en": ("yes", "no"), "zh": ("是", "否")}[language]
    rows = [
        (
            each["about"],
            yes if each["verdict"] == "broken" and each["suspects"][0] == each["expected"] else no,
            each["question"] or "-",
            each["suspects"][0] if each["suspects"] else "-",
            each["evidence"],
            f"{each['doctor_seconds']:.0f}",
        )
        for each in read("doctor")["results"]
        if each["expected"]
    ]
    return lines_of(heads, rows)


def _percent(share: float) -> str:
    return f"{100 * share:g}%"


TABLES: dict[str, Callable[[str], str]] = {
    "doctor_power": power,
    "doctor_detectable": detectable,
    "doctor_biased_envs": biased_envs,
    "doctor_summary": summary,
    "doctor_faults": faults,
}
