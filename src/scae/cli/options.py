"""Options from typed dataclasses by tyro, with every mistake answered in one sentence."""

import contextlib
import difflib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import tyro

from scae.errors import ScaeError

Options = TypeVar("Options")

Source = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
"""A trained model: run folder, weights file or name of a shipped model."""
DataDir = Annotated[Path | None, tyro.conf.arg(name="data")]
"""An option `--data DIR` that leaves `--data.name` and the like to the experiment."""

RULE = re.compile(r"^[\s│|]*[─-]{5,}[\s│|]*$")
# Python's own words for a value that is not of the type, and ours.
REPLACED = (
    (r"invalid literal for int\(\) with base 10: ('.*?')", r"\1 is not a whole number"),
    (r"could not convert string to float: ('.*?')", r"\1 is not a number"),
    (r"Could not find valid parse for arguments: (\[.*?\])", r"\1 are not valid values"),
    (r"^Error parsing (\S+): ", r"\1: "),
    (r"^invalid choice ('.*?') for argument '(.*?)'\. Expected one of \((.*?),?\)\.?$",
     r"\2: \1 is not one of \3"),
    (r"^Missing from [^:]+: (?=-)(\S+) .*$", r"\1 is required"),
    (r"^Missing from [^:]+: ([A-Z]+) .*$", r"\1 is required"),
    (r"^Missing value for argument '(.*?)'.*$", r"\1 needs a value"),
)  # fmt: skip


def parse(
    options: type[Options],
    arguments: Sequence[str],
    command: str,
    default: Options | None = None,
) -> Options:
    """The dataclass `options` filled from the command line."""
    _refuse_unknown(options if default is None else default, arguments, command)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            result = tyro.cli(
                options, prog=f"scae {command}", args=list(arguments), default=default
            )
            return cast(Options, result)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ScaeError(f"{_sentence(errors.getvalue())}; see `scae {command} --help`.") from None


def check_seed(seed: int) -> None:
    """Refuse what scikit-learn does not take, before hours are spent on reaching it."""
    if not 0 <= seed < 2**32:
        raise ScaeError(f"--seed is {seed}; give a whole number from 0 to {2**32 - 1}.")


def choose(
    arguments: Sequence[str], command: str, actions: Mapping[str, str]
) -> tuple[str, list[str]]:
    """The action of a command such as `scae data list`, and what follows it."""
    width = max(map(len, actions))
    listing = "\n".join(f"  {name:<{width}}  {text}" for name, text in actions.items())
    if arguments and arguments[0] in ("-h", "--help"):
        print(f"usage: scae {command} ACTION ...\n\nactions:\n{listing}")
        raise SystemExit(0)
    if not arguments or arguments[0] not in actions:
        given = f"not {arguments[0]!r}" if arguments else "nothing was given"
        raise ScaeError(f"`scae {command}` needs one of {', '.join(actions)}; {given}.")
    return arguments[0], list(arguments[1:])


def _refuse_unknown(options: object, arguments: Sequence[str], command: str) -> None:
    """An unknown option is answered with the nearest known one."""
    known = {"-h", "--help", *option_names(options)}
    for argument in arguments:
        name = argument.partition("=")[0].replace("_", "-")
        if name.startswith("--") and len(name) > 2 and name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.7)
            hint = f"did you mean {near[0]}?" if near else f"see `scae {command} --help`."
            raise ScaeError(f"unknown option {argument.partition('=')[0]}; {hint}")


def option_names(options: object, prefix: str = "--") -> Iterator[str]:
    """Names of all options of a dataclass (or of an example of it), as typed by the user."""
    for field in fields(options):  # type: ignore[arg-type]
        value = getattr(options, field.name, None)
        inner = value if is_dataclass(value) else field.type
        name = _shown_name(field.type, field.name)
        if is_dataclass(inner):
            yield from option_names(inner, f"{prefix}{name}." if name else prefix)
        else:
            yield f"{prefix}{name}"
            if field.type is bool:
                yield f"{prefix}no-{name}"


def _shown_name(annotation: Any, name: str) -> str:
    for extra in getattr(annotation, "__metadata__", ()):
        shown = getattr(extra, "name", None)
        if isinstance(shown, str):
            return shown
    return name.replace("_", "-")


def _sentence(message: str) -> str:
    """The first paragraph of tyro's message, in plainer words.

    Paragraphs are divided by rules. On a UTF-8 terminal the title is part of a frame,
    elsewhere it is a paragraph of its own.
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", message)
    framed = "╭" in text
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        if RULE.match(line):
            paragraphs.append([])
        elif not line.lstrip().startswith(("╭", "╰")):
            paragraphs[-1].append(line.strip("│| \t"))
    spoken = paragraphs[0] if framed or len(paragraphs) == 1 else paragraphs[1]
    sentence = " ".join(" ".join(spoken).split()) or "these options could not be read"
    for pattern, words in REPLACED:
        sentence = re.sub(pattern, words, sentence)
    return sentence.rstrip(".")
