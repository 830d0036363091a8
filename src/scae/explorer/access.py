"""Who may talk to the server: the right host name, the same origin, the right token."""

import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from scae.errors import ScaeError
from scae.explorer.problems import RequestError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MIN_TOKEN = 8
MAX_TOKEN = 200


def new_token() -> str:
    """A secret that cannot be guessed."""
    return secrets.token_urlsafe(24)


def check_token(token: str) -> str:
    """A token the user chose, if it can stand in an address and is not too easy."""
    fits = MIN_TOKEN <= len(token) <= MAX_TOKEN and token.isascii()
    if not fits or not all(c.isalnum() or c in "-_" for c in token):
        raise ScaeError(
            f"The token must have {MIN_TOKEN} to {MAX_TOKEN} letters, digits, - or _; "
            "leave it out for a random one."
        )
    return token


@dataclass(frozen=True)
class Access:
    """The rules of one running server."""

    token: str
    host: str = "127.0.0.1"
    """Address the server listens on."""
    port: int | None = None
    """Port the server listens on; None (in tests) accepts any."""

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a host, so the name tells servers apart."""
        return f"scae-explore-{self.port or 0}"

    def check_host(self, header: str | None) -> None:
        """Refuse foreign names: a hostile site may have its name lead here (DNS rebinding)."""
        name, port = split_host(header or "")
        if self.port is not None and port != self.port:
            raise RequestError(421, "This server does not answer to that host name and port.")
        if name in LOOPBACK or name == self.host.lower():
            return
        if self.host in ("0.0.0.0", "::") and (_is_address(name) or name == _own_name()):
            return  # reachable from elsewhere on request; a rebound name is still refused
        raise RequestError(421, "This server does not answer to that host name and port.")

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse requests that another page makes."""
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers.get('host')}":
            raise RequestError(403, "Requests from other pages are refused.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise RequestError(403, "Requests from other pages are refused.")

    def presents_token(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the token in its cookie or as a bearer."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(bearer.strip()):
            return True
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return morsel is not None and self._is_token(morsel.value)

    def token_in_query(self, query: bytes) -> bool | None:
        """Whether the address carries the right token; None if it carries none."""
        try:
            given = parse_qs(query.decode("ascii"), max_num_fields=8).get("token")
        except ValueError:
            return None
        return None if not given else self._is_token(given[0])

    def cookie_header(self) -> str:
        """The cookie scripts cannot read and other sites cannot use."""
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())


def split_host(header: str) -> tuple[str, int]:
    """Name and port of a Host header; IPv6 addresses without their brackets."""
    name, colon, port = header.rpartition(":")
    if not colon or header.endswith("]"):
        name, port = header, "80"
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1
    return name.removeprefix("[").removesuffix("]").lower(), number


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _own_name() -> str:
    return socket.gethostname().lower()
