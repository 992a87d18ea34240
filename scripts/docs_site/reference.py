"""Write the reference from the code: commands, settings, metric tags, the run folder, the API, examples, faults."""

import ast
import importlib
import inspect
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

PAGES = tuple(f"reference/{name}" for name in ("cli", "settings", "metrics", "run_folder", "api", "examples", "faults"))
FOLDERS = (
    *("", "games", "models", "planning", "agents", "learning", "evaluation", "runs", "runs.studies", "doctor"),
    *("report", "core"),
)
WRAPPERS = ("Annotated", "tyro.conf.Suppress", "tyro.conf.Positional")
"""Types around a type, which speak to the parser of the command line."""
DEFAULT = re.compile(r"\s*\((?:default: (?P<default>.*)|required|optional|repeatable)\)\s*$", re.DOTALL)

COLUMNS = ("values", "default", "meaning")
CLI = """# Commands

This page is written from the parsers of the commands. `hopplus VERB --help` prints the same.
Exit codes: 0 done, 1 a fault was found, 2 the command failed and stderr says why.
`hopplus --cache FOLDER VERB ...` keeps compiled programs in that folder, `--cache off` keeps none.
"""
TRAINING = "The defaults are those of `ppo` on the 4x4 stag hunt.\n"
BY_AGENT = """### Defaults by agent

Flags whose default depends on the agent, on the 4x4 stag hunt. Defaults also depend on the game:
`hopplus train AGENT --game GAME --help` shows them.
"""
SETTINGS = """# Settings

Every setting of a run is a field of a frozen dataclass, a flag of `hopplus train` and a line of `config.json`.
This page is written from these classes. In a flag, `_` becomes `-`, and groups are joined by dots:
`RunConfig.learner.ppo.clip` is `--ppo.clip`. The defaults here are those of the class.
The defaults of an agent are in [commands](cli.md#defaults-by-agent).
"""
METRICS = """# Metric tags

A line of `metrics.jsonl` is one update. Each tag has one number per seed, and null where there was none.
TensorBoard and Weights & Biases have the same tags.

A tag that differs by seat also has `/player_1`, `/player_2` and so on; the tag without an end is their mean.
Only `charts/episodic_return` names its mean `/mean`. `/player_1_of_2` is about the first player's model of the second.
An agent of your own adds tags under `policy/`.
"""
RUN_FOLDER = """# Run folder

`hopplus train` makes one folder for a run. [Runs](../runs.md) says how it is resumed and which versions read it.
"""
EXAMPLES = """# Examples

The files of the folder `examples`, in full.
"""
FAULTS_PAGE = """# Planted faults

`hopplus doctor fault NAME COMMAND ...` runs a command with one of these faults switched on.
The doctor must find it and blame the part. [How it was measured](../doctor.md).
"""
API = """# Python API

The public names of each folder, as in `from hopplus.games import make`. `import hopplus` alone has the names that a
notebook needs. Names that are not here may change without notice.
"""


def all_pages(root: Path) -> dict[str, str]:
    """The text of each page of the reference, by its name."""
    written = (cli(), settings(), metrics(), run_folder(), api(), examples(root), faults())
    return dict(zip(PAGES, written, strict=True))


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table, or a word where it has no rows; what a cell says is kept in one line."""
    if not rows:
        return "No arguments.\n"
    lines = [header, ("---",) * len(header), *rows]
    return "".join("| " + " | ".join(" ".join(cell.split()) for cell in line) + " |\n" for line in lines)


def plain(text: str) -> str:
    """Text for a table or a paragraph: what Markdown and HTML would read as marks is shown as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    marks = str.maketrans({"<": "&lt;", "*": r"\*", "[": r"\[", "|": r"\|", "{": r"\{", "_": r"\_"})
    return "".join(part.replace("|", r"\|") if part.startswith("`") else part.translate(marks) for part in parts)


def code(text: str) -> str:
    """A name as code, also in a table."""
    return f"`{text}`".replace("|", r"\|")


# Commands


def commands() -> dict[str, tuple[str, Any]]:
    """Every command with its description and its argparse parser."""
    import tyro

    from hopplus.agents.named import NAMES
    from hopplus.cli.main import VERBS
    from hopplus.cli.verbs import doctor, study, train
    from hopplus.runs.config import RunConfig

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = {}
        for verb, name in VERBS.items():
            kind = getattr(importlib.import_module(f"hopplus.cli.verbs.{verb}"), name)
            if not isinstance(kind, str):
                found[f"hopplus {verb}"] = (kind.__doc__, tyro.extras.get_parser(kind))
            elif verb == "train":
                parsers = [tyro.extras.get_parser(train._arguments(RunConfig(agent=agent))) for agent in NAMES]
                found["hopplus train AGENT"] = (kind, dict(zip(NAMES, parsers, strict=True)))
            else:
                module = {"doctor": doctor, "study": study}[verb]
                for action in module.Action.__args__:
                    about, configuration = action.__origin__, action.__metadata__[0]
                    title = f"hopplus {verb} {configuration.name}"
                    found[title] = (about.__doc__, tyro.extras.get_parser(about))
    return found


def flags(parser: Any) -> dict[str, tuple[str, str, str]]:
    """Each argument of a parser: its values, its default, its help."""
    found = {}
    for action in parser._actions:
        if action.dest == "help":
            continue
        name = ", ".join(action.option_strings) or str(action.metavar)
        text, match = action.help or "", DEFAULT.search(action.help or "")
        default = (
            (match["default"] if match and match["default"] is not None else match[0].strip(" ()")) if match else ""
        )
        found[name] = (str(action.metavar or ""), default, text[: match.start()] if match else text)
    return found


def cli() -> str:
    """The page of all commands."""
    parts = [CLI]
    for title, (about, parser) in commands().items():
        parts.append(f"## {title}\n\n{plain(inspect.cleandoc(about))}\n")
        if isinstance(parser, dict):
            parts.append(_training_flags(parser))
        else:
            parts.append(table(("argument", *COLUMNS), _rows(flags(parser))))
    return "\n".join(parts)


def _training_flags(parsers: dict[str, Any]) -> str:
    """All flags of training with ppo's defaults, and where other agents have other defaults."""
    by_agent = {agent: flags(parser) for agent, parser in parsers.items()}
    first = by_agent["ppo"]
    differ = [name for name in first if len({found[name][1] for found in by_agent.values()}) > 1]
    agents = ["ppo", *(agent for agent in by_agent if agent != "ppo")]
    defaults = [(code(name), *(code(by_agent[agent][name][1]) for agent in agents)) for name in differ]
    return f"{TRAINING}\n{table(('flag', *COLUMNS), _rows(first))}\n{BY_AGENT}\n{table(('flag', *agents), defaults)}"


def _rows(found: dict[str, tuple[str, str, str]]) -> list[tuple[str, ...]]:
    """The rows of a table of arguments."""
    return [
        (code(name), code(values) if values not in ("", name) else "", code(default) if default else "", plain(text))
        for name, (values, default, text) in found.items()
    ]


# Settings


def field_texts(kind: type) -> dict[str, str]:
    """The docstring of each field of a class, its own or inherited: the string after the field."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base is object or not base.__module__.startswith("hopplus"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        found |= strings_after(body.body)
    return found


def strings_after(body: list[ast.stmt]) -> dict[str, str]:
    """Names that are given a value or a type, and the string that follows each."""
    found = {}
    for first, second in pairwise(body):
        target = (
            first.target
            if isinstance(first, ast.AnnAssign)
            else first.targets[0]
            if isinstance(first, ast.Assign)
            else None
        )
        said = second.value if isinstance(second, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(said, ast.Constant) and isinstance(said.value, str):
            found[target.id] = inspect.cleandoc(said.value)
    return found


def settings_classes() -> list[type]:
    """Every class of settings, reached from those of a run, of pretraining and of hosts."""
    from hopplus.learning.pretrain_config import PretrainConfig, WorldPretrainConfig
    from hopplus.runs.config import RunConfig
    from hopplus.runs.hosts_config import HostsConfig

    found: list[type] = []

    def visit(kind: type) -> None:
        if kind in found:
            return
        found.append(kind)
        for hint in get_type_hints(kind).values():
            if is_dataclass(hint) and isinstance(hint, type):
                visit(hint)

    for kind in (RunConfig, PretrainConfig, WorldPretrainConfig, HostsConfig):
        visit(kind)
    return found


def settings() -> str:
    """The page of all settings."""
    parts = [SETTINGS]
    for kind in settings_classes():
        texts, sources = field_texts(kind), field_sources(kind)
        rows = [
            (
                code(each.name),
                code(sources[each.name][0]),
                _default(each, sources[each.name][1]),
                plain(texts[each.name]),
            )
            for each in fields(kind)
        ]
        about = plain(inspect.cleandoc(kind.__doc__ or ""))
        parts.append(f"## {kind.__name__}\n\n{about}\n\n`from {kind.__module__} import {kind.__name__}`\n")
        parts.append(table(("field", "type", "default", "meaning"), rows))
    return "\n".join(parts)


def field_sources(kind: type) -> dict[str, tuple[str, str]]:
    """The type and the default of each field of a class, as its source has them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    given = (node for node in body.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
    return {
        ast.unparse(node.target): (ast.unparse(_bare(node.annotation)), ast.unparse(node.value) if node.value else "")
        for node in given
    }


def _bare(annotation: ast.expr) -> ast.expr:
    """A type without what it says to the parser of the command line."""
    if not isinstance(annotation, ast.Subscript) or ast.unparse(annotation.value) not in WRAPPERS:
        return annotation
    inside = annotation.slice
    return _bare(inside.elts[0] if isinstance(inside, ast.Tuple) else inside)


def _default(field: Any, source: str) -> str:
    if "cast(" in source:
        return "by agent and game"
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    value = field.default if field.default is not MISSING else field.default_factory()
    if is_dataclass(value):
        return f"[{type(value).__name__}](#{type(value).__name__.lower()})"
    return code(str(value))


# Metric tags, run folder, examples, faults


def metrics() -> str:
    """The page of all metric tags."""
    from hopplus.runs.tags import TAGS

    groups: dict[str, list[tuple[str, ...]]] = {}
    for tag, text in TAGS.items():
        groups.setdefault(tag.split("/")[0], []).append((code(tag), plain(text)))
    parts = [METRICS]
    parts += [f"## {group}\n\n{table(('tag', 'meaning'), rows)}" for group, rows in groups.items()]
    return "\n".join(parts)


def run_folder() -> str:
    """The page of the files in a run folder."""
    from hopplus.runs import folder

    lines = [line for line in (folder.__doc__ or "").splitlines() if re.match(r"\S+ {2,}\S", line)]
    rows = [(code(name), plain(text)) for name, text in (re.split(r" {2,}", line, maxsplit=1) for line in lines)]
    return f"{RUN_FOLDER}\n{table(('file', 'content'), rows)}"


def examples(root: Path) -> str:
    """The page of all examples, in full."""
    parts = [EXAMPLES]
    for path in sorted((root / "examples").rglob("*.*")):
        if path.suffix in (".py", ".toml"):
            language = {".py": "python", ".toml": "toml"}[path.suffix]
            place = path.relative_to(root).as_posix()
            parts.append(f"## {path.name}\n\n`{place}`\n\n```{language}\n{path.read_text(encoding='utf-8')}```\n")
    return "\n".join(parts)


def faults() -> str:
    """The page of planted faults."""
    from hopplus.doctor import FAULTS

    rows = [(code(name), plain(fault.about), plain(fault.module), code(fault.agent)) for name, fault in FAULTS.items()]
    return f"{FAULTS_PAGE}\n{table(('name', 'fault', 'part to blame', 'simplest agent'), rows)}"


# API


def public_names(folder: str) -> Iterator[tuple[str, Any, str]]:
    """Each public name of a folder, its value, and its docstring; empty where it has none."""
    package = importlib.import_module(f"hopplus.{folder}" if folder else "hopplus")
    for name in package.__all__:
        value = getattr(package, name)
        yield name, value, docstring(package, name, value)


def docstring(package: Any, name: str, value: Any) -> str:
    """The docstring of a name. A constant or a type has the string that follows it in its module."""
    if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
        own = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
        is_generated = inspect.isclass(value) and is_dataclass(value) and (own or "").startswith(f"{name}(")
        return "" if is_generated else inspect.cleandoc(own or "")
    stub = Path(inspect.getfile(package)).with_suffix(".pyi")
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    home = next(str(node.module) for node in imports for alias in node.names if alias.name == name)
    module = importlib.import_module(home)
    return strings_after(ast.parse(inspect.getsource(module)).body).get(name, "")


def api() -> str:
    """The page of all public names."""
    parts = [API]
    for folder in FOLDERS:
        title = f"hopplus.{folder}" if folder else "hopplus"
        package = importlib.import_module(title)
        parts.append(f"## {title}\n\n{_paragraphs(package.__doc__ or '')}\n")
        for name, value, text in public_names(folder):
            parts.append(f"### {title}.{name}\n\n{_signature(name, value)}{_paragraphs(text)}\n")
            if inspect.isclass(value) and is_dataclass(value) and not _is_settings(value):
                parts.append(_fields(value))
            if inspect.isclass(value):
                parts.append(_methods(value))
    return "\n".join(part for part in parts if part)


def _is_settings(kind: type) -> bool:
    return kind in settings_classes()


def _paragraphs(text: str) -> str:
    """A docstring as Markdown: indented lines are code, the rest is text."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(
        f"```text\n{block}\n```" if re.search(r"^ {2,}|^from |\S {3,}\S", block, re.MULTILINE) else plain(block)
        for block in blocks
    )


def _signature(name: str, value: Any) -> str:
    if not callable(value) or inspect.ismodule(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    if inspect.isclass(value) and _is_settings(value):
        return f"Its fields are in [settings](settings.md#{name.lower()}).\n\n"
    words = [str(each).split(":")[0].split("=")[0] for each in signature.parameters.values()]
    optional = [f"{word}=..." if each.default is not inspect.Parameter.empty else word
                for word, each in zip(words, signature.parameters.values(), strict=True)]  # fmt: skip
    kinds = [each.kind for each in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        optional.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    return f"```python\n{name}({', '.join(optional)})\n```\n\n"


def _fields(kind: type) -> str:
    texts = field_texts(kind)
    rows = [(code(field.name), plain(texts.get(field.name, ""))) for field in fields(kind)]
    return table(("field", "meaning"), rows) if any(text for _, text in rows) else ""


def _methods(kind: type) -> str:
    found = []
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        call = name if isinstance(value, property) else f"{name}()"
        found.append((code(call), plain(inspect.cleandoc(function.__doc__).split("\n\n")[0])))
    return table(("method", "meaning"), found) if found else ""
