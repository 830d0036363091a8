"""Starts the page's server on this machine and opens it in the browser."""

import contextlib
import ipaddress
import socket
import threading
import webbrowser
from pathlib import Path

import uvicorn

from scae.api import Loaded
from scae.errors import ScaeError
from scae.explorer.access import check_token, new_token
from scae.explorer.application import app

CONNECTIONS = 256
"""Connections at a time; more are answered 503 at once."""
WILDCARDS = ("0.0.0.0", "::")


def serve(
    source: Loaded | str | Path,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    open_browser: bool = True,
    data_dir: Path | str | None = None,
) -> None:
    """Serve the page until interrupted.

    Only this machine can reach it unless `host` says otherwise, and only with the token,
    which is random unless given.
    """
    secret = new_token() if token is None else check_token(token)
    with contextlib.closing(bind(host, port)) as listening:
        bound = int(listening.getsockname()[1])
        page = app(source, token=secret, host=host, port=bound, data_dir=data_dir)
        address = f"http://{url_host(host)}:{bound}/?token={secret}"
        print(f"Open {address}\nStop with Ctrl-C.", flush=True)
        if not is_loopback(host):
            print(f"Other machines can reach this page: it listens on {host}.", flush=True)
        config = uvicorn.Config(
            page,
            log_level="warning",
            access_log=False,  # addresses carry the token
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            ws="none",
        )
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        uvicorn.Server(config).run(sockets=[listening])


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, bound before anything is promised; port 0 takes a free one."""
    if not 0 <= port < 65536:
        raise ScaeError(f"A port is a number from 0 (any free one) to 65535, not {port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(CONNECTIONS)
    except OSError as error:
        listening.close()
        raise ScaeError(
            f"Cannot listen on {host} port {port} ({error.strerror or error}); "
            "choose another --port or --host."
        ) from None
    return listening


def url_host(host: str) -> str:
    """The host as it stands in an address."""
    if host in WILDCARDS:
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
