"""The command `scae`: one small module per command, imported when it is asked for.

Commands read options (tyro, from typed dataclasses), call the library and print; they contain
no mathematics. Nothing here imports torch, so that `scae --help` answers at once.
"""

import difflib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TextIO

from scae.errors import ScaeError

COMMANDS = {
    "train": "train a preset, or continue a run with --resume",
    "evaluate": "LIN-MATCH, LIN-PRED or segmentation error of a model",
    "predict": "clusters of your own images, as CSV",
    "figures": "the paper's figures from any run",
    "explore": "a local web page to look inside a model",
    "export": "ONNX, safetensors or a torch program",
    "reproduce": "the paper's tables",
    "data": "list, check or download data sets",
    "presets": "every preset with its source and measured result",
}

USAGE = """usage: scae COMMAND ...

Stacked Capsule Autoencoders: parts of images and objects of parts, without labels.

commands:
{commands}

`scae COMMAND --help` explains each command, `scae train PRESET --help` every option with the
paper's value. SOURCE is a run folder, a weights file or the name of a shipped model."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 fine, 2 bad input, 130 interrupted)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _run(arguments)
        sys.stdout.flush()
    except ScaeError as error:
        print(f"scae: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("scae: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away; leave no second complaint at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        print(f"scae: cannot use{where}: {error.strerror or error}", file=sys.stderr)
        return 2
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 2
    return 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings are sentences for the user; others keep the place they come from."""
    if category is UserWarning:
        print(f"scae: warning: {message}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno), file=sys.stderr)


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
        print(USAGE.format(commands="\n".join(lines)))
        return
    if arguments[0] in ("-V", "--version"):
        from scae import __version__

        print(f"scae {__version__}")
        return
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean `scae {near[0]}`?" if near else "`scae --help` lists the commands."
        raise ScaeError(f"there is no command {name!r}; {hint}")
    command: Callable[[list[str]], None] = import_module(f"scae.cli.{name}").command
    command(rest)
