"""The first thing every request meets: checks, limits, and the headers of every answer."""

import asyncio
import json
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scae.explorer.access import Access
from scae.explorer.limits import Bucket, Limits
from scae.explorer.problems import RequestError

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
# The cookie is Strict, so a redirect would arrive without it after a click on another site;
# a refresh is a navigation of our own page.
WELCOME = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><title>scae explore</title>'
    b'<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Open the page</a></p></html>'
)


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits):
        self.app, self.access, self.limits = app, access, limits
        self.known = Bucket(limits.rate, limits.burst)
        self.strangers = Bucket(limits.stranger_rate, limits.stranger_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", ())}
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                headers = [*message.get("headers", ()), *(h for h in extra if h[0] not in given)]
                message = {**message, "headers": headers}
            await send(message)

        try:
            headers = read_headers(scope)
            if self.welcomes(scope, headers):
                cookie = ("set-cookie", self.access.cookie_header())
                await respond(guarded, 200, "text/html; charset=utf-8", WELCOME, cookie)
                return
            body = await self.read_body(headers, receive)
        except RequestError as problem:
            await refuse(guarded, scope, problem)
            return
        try:
            await self.app(scope, replay(body, receive), guarded)
        except asyncio.CancelledError:
            # The server is being stopped; it would show whoever pressed Ctrl-C a traceback.
            await refuse(guarded, scope, RequestError(503, "The page was stopped."))

    def welcomes(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Raise for requests that may not pass; True for the first visit with the token."""
        self.access.check_host(headers.get("host"))
        if self.access.presents_token(headers):
            self.access.check_origin(headers)
            if not self.known.take():
                raise RequestError(429, "Too many requests; wait a moment.")
            return False
        if not self.strangers.take():
            raise RequestError(429, "Too many requests without the token; wait a moment.")
        query: bytes = scope.get("query_string", b"")
        first = scope["method"] == "GET" and scope["path"] == "/"
        if first and self.access.token_in_query(query):
            return True
        raise RequestError(
            401, "Open the address that `scae explore` printed: it carries the token of this page."
        )

    async def read_body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The whole body, refused as soon as it is announced or found to be too large."""
        too_large = RequestError(413, f"The request is larger than {self.limits.body // 1000} kB.")
        announced = headers.get("content-length", "0")
        if not (announced.isascii() and announced.isdigit() and len(announced) < 16):
            raise RequestError(400, "The request's length is not a number.")
        if int(announced) > self.limits.body:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RequestError(400, "The request ended before it was complete.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.limits.body:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise RequestError(408, "The request took too long to arrive.") from None


def read_headers(scope: Scope) -> dict[str, str]:
    """Headers by name; those that decide who may pass must not come twice."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in headers and name in ("host", "origin", "content-length", "authorization"):
            raise RequestError(400, f"The header {name} was sent twice.")
        headers[name] = raw_value.decode("latin-1")
    return headers


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out the body already read, then waits for the connection's end."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(send: Send, scope: Scope, problem: RequestError) -> None:
    """The sentence: as JSON to scripts, as plain text to people."""
    if scope["path"].startswith("/api/"):
        body = json.dumps({"error": str(problem)}).encode()
        await respond(send, problem.status, "application/json", body)
    else:
        text = f"{problem}\n".encode()
        await respond(send, problem.status, "text/plain; charset=utf-8", text)


async def respond(send: Send, status: int, kind: str, body: bytes, *extra: tuple[str, str]) -> None:
    """One complete answer; refused connections are closed, since their body may be unread."""
    headers = [("content-type", kind), ("content-length", str(len(body))), *extra]
    if status >= 400:
        headers.append(("connection", "close"))
    raw = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
