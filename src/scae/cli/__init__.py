"""The command `scae`: finds the command, lets tyro read its options, explains what went wrong.

Commands call the library and return what to print; they contain no mathematics. Nothing is
imported before it is needed, so that `scae --help` answers at once.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from scae.errors import ScaeError, did_you_mean

COMMANDS = {
    "train": ("digits", "train a preset or your own images"),
    "evaluate": ("mnist", "scores of a trained model"),
    "predict": ("mnist --data DIR --out a.csv", "clusters of your own images"),
    "figures": ("mnist --out figures", "the paper's figures of a model"),
    "explore": ("mnist", "a local page to look inside a model"),
    "export": ("mnist --out mnist.onnx", "ONNX, for use without torch"),
    "reproduce": ("table2 --budget smoke", "the paper's tables"),
    "data": ("list", "list, check, download data sets"),
    "presets": ("", "every preset, its measured result"),
}
"""Arguments of an example, and what the command is for."""
EXTRAS = {"explore": "explorer", "export": "export"}

HELP = """Stacked Capsule Autoencoders: parts of images, objects of parts, without labels.

Examples, one of each command:
{examples}

`scae COMMAND --help` explains a command, `scae train PRESET --help` lists every
option with the paper's value. A model is a run folder, a weights file or the
name of a shipped model (mnist, mnist40, digits, constellation). With --json a
command prints nothing but JSON."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 fine, 2 bad input, 130 interrupted)."""
    # Pydantic's errors end with the address of a web page, which says no more to a user.
    os.environ.setdefault("PYDANTIC_ERRORS_INCLUDE_URL", "0")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Warnings().show  # type: ignore[assignment]
            _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except ScaeError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # the reader (head, less) went away
        _drop_output()
    except OSError as error:
        _drop_output()
        where = f" {error.filename}" if error.filename else ""
        return _fail(f"cannot use{where}: {error.strerror or error}")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 2
    return 0


def _run(arguments: list[str]) -> None:
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help", "help"):
        lines = [f"  scae {f'{name} {args}':<37}{text}" for name, (args, text) in COMMANDS.items()]
        return print(HELP.format(examples="\n".join(lines)))
    if name in ("-V", "--version"):
        from scae import __version__

        return print(f"scae {__version__}")
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS, "`scae --help` lists the commands.")
        raise ScaeError(f"there is no command {name!r}; {hint}")
    as_json = "--json" in rest
    # What libraries print meanwhile is no part of the answer.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        answer = _answer(name, [argument for argument in rest if argument != "--json"])
    if answer is None:
        return
    if as_json:
        from pydantic_core import to_json

        print(to_json(answer.result, indent=2, inf_nan_mode="null").decode())
    else:
        print(answer.text)
    if answer.failure:
        raise ScaeError(answer.failure)


def _answer(name: str, arguments: list[str]) -> Any:
    """What the command returns: an Answer, or None if it has nothing to add."""
    if name == "train":
        from scae.cli.train import train

        return train(arguments)
    import tyro

    from scae.cli import commands

    try:
        return tyro.cli(getattr(commands, name), prog=f"scae {name}", args=arguments)
    except ModuleNotFoundError as error:
        if name not in EXTRAS or (error.name or "").startswith("scae"):
            raise
        raise ScaeError(
            f"this command needs the package {error.name}; install it with "
            f"`python -m pip install 'scae[{EXTRAS[name]}]'`."
        ) from None


def _fail(sentence: str, code: int = 2) -> int:
    print(f"scae: {sentence}", file=sys.stderr)
    return code


def _drop_output() -> None:
    """Discard what cannot be printed, so that Python does not complain once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Warnings:
    """Sentences for the user, each once, above the progress bar if there is one."""

    def __init__(self) -> None:
        self.shown: set[str] = set()

    def show(self, message: Warning | str, *_: Any) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        if str(message) not in self.shown:
            self.shown.add(str(message))
            tqdm.write(f"scae: warning: {message}", file=sys.stderr)
