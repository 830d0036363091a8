"""`scae explore [MODEL]`: a local web page to look inside a model."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from scae.cli.options import DataDir, parse
from scae.cli.output import needs


@dataclass(frozen=True)
class Explore:
    """Open a local web page: draw a digit, see its parts and objects, drag them."""

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")] = "mnist"
    """Run folder, weights file or name of a shipped model."""
    data_dir: DataDir = None
    """Folder of data sets, for pictures to pick from; works without."""
    host: str = "127.0.0.1"
    """Address to listen on; other machines can reach the page only if you change it."""
    port: int = 0
    """Port to listen on; 0 takes a free one."""
    browser: bool = True
    """Open the page in the browser."""


def command(arguments: list[str]) -> None:
    """Serve until interrupted."""
    options = parse(Explore, arguments, "explore")
    with needs("explorer"):
        from scae.api import load_model
        from scae.explorer import serve

        serve(
            load_model(options.model),
            options.host,
            options.port,
            options.browser,
            options.data_dir,
        )
