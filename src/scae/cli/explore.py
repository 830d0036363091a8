"""`scae explore [SOURCE]`: a local web page to look inside a model."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from scae.cli.options import DataDir, parse
from scae.cli.output import needs


@dataclass(frozen=True)
class Explore:
    """Open a local web page: draw a digit, see parts and objects, drag poses."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = "mnist"
    """Run folder, weights file or name of a shipped model."""
    data_dir: DataDir = None
    """Folder of data sets, for pictures to pick from; works without."""
    host: str = "127.0.0.1"
    """Address to listen on; other machines can reach the page only if you change it."""
    port: int = 0
    """Port to listen on; 0 takes a free one."""
    token: str | None = None
    """Secret in the page's address; default: a new random one."""
    browser: bool = True
    """Open the page in the browser."""


def command(arguments: list[str]) -> None:
    """Serve until interrupted."""
    options = parse(Explore, arguments, "explore")
    with needs("explorer"):
        from scae.api import load_source
        from scae.explorer import serve

        serve(
            load_source(options.source),
            data_dir=options.data_dir,
            host=options.host,
            port=options.port,
            token=options.token,
            open_browser=options.browser,
        )
