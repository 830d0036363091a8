"""The command `scae`: one small module per command, imported when it is asked for.

Commands read options, call the library and print; they contain no mathematics. Nothing here
imports torch, so that `scae --help` answers at once.
"""

import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TextIO

from scae.errors import ScaeError

COMMANDS = {
    "train": ("train a preset or your own images", "scae train digits"),
    "evaluate": ("scores of a trained model", "scae evaluate mnist"),
    "predict": ("clusters of images, segments of points", "scae predict runs/images --data DIR"),
    "figures": ("the paper's figures of a model", "scae figures mnist --out figures"),
    "explore": ("a local page to look inside a model", "scae explore mnist"),
    "export": ("ONNX, safetensors or a torch program", "scae export mnist --out mnist.onnx"),
    "reproduce": ("the paper's tables", "scae reproduce table2 --budget smoke"),
    "data": ("list, check or download data sets", "scae data list"),
    "presets": ("every preset with its measured result", "scae presets"),
}

USAGE = """usage: scae COMMAND ...

Stacked Capsule Autoencoders: parts of images and objects of parts, without labels.

{commands}

`scae COMMAND --help` explains each command, `scae train PRESET --help` lists every option with
the paper's value. A model is a run folder, a weights file or the name of a shipped model."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 fine, 2 bad input, 130 interrupted)."""
    # Pydantic's errors end with the address of a web page, which says no more to a user.
    os.environ.setdefault("PYDANTIC_ERRORS_INCLUDE_URL", "0")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _run(list(sys.argv[1:] if argv is None else argv))
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


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        lines = [f"  {name:<10} {text:<39} {example}" for name, (text, example) in COMMANDS.items()]
        print(USAGE.format(commands="\n".join(lines)))
        return
    if arguments[0] in ("-V", "--version"):
        from scae import __version__

        print(f"scae {__version__}")
        return
    name, *rest = arguments
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean `scae {near[0]}`?" if near else "`scae --help` lists the commands."
        raise ScaeError(f"there is no command {name!r}; {hint}")
    import_module(f"scae.cli.{name}").command(rest)


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
