"""Starts the page's server on this machine and opens it in the browser."""

import ipaddress
import secrets
import socket
import threading
import webbrowser
from pathlib import Path

import uvicorn

from scae.api import Loaded
from scae.errors import ScaeError
from scae.explorer.app import create_app

MAX_CONNECTIONS = 256


def serve(
    loaded: Loaded,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    data_dir: Path | None = None,
) -> None:
    """Serve the page until interrupted; it needs the token in the printed address.

    Only this machine can reach it unless `host` says otherwise.
    """
    token = secrets.token_urlsafe(24)
    with listen(host, port) as listening:
        app = create_app(loaded, token, host, data_dir)
        reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        shown = f"[{reached}]" if ":" in reached else reached
        address = f"http://{shown}:{listening.getsockname()[1]}/?token={token}"
        print(f"Open {address}\nStop with Ctrl-C.", flush=True)
        if not is_loopback(host):
            print(f"Other machines can reach this page: it listens on {host}.", flush=True)
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # addresses carry the token
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=2,
            ws="none",
        )
        uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScaeError(
            f"Cannot listen on {host} port {port} ({reason}); choose another --port or --host."
        ) from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
