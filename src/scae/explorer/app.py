"""The web application: static files, and questions to one model for those who have the token."""

import hashlib
import mimetypes
import secrets
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import torch
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from scae.api import Loaded
from scae.errors import ScaeError
from scae.explorer.image_view import ImageView
from scae.explorer.point_view import PointView
from scae.models import StackedCapsuleAutoencoder

PAGE = Path(__file__).parent / "page"
MAX_BODY = 1_000_000
MAX_CONNECTIONS = 512
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost")
NO_TOKEN = "Open the address that `scae explore` printed: it carries the token of this page."

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


def create_app(
    loaded: Loaded, token: str, host: str = "127.0.0.1", data_dir: Path | None = None
) -> FastAPI:
    """The application for one model; `host` is the address it is reached by."""
    # FastAPI's own pages would load scripts from elsewhere.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # Cookies are shared by all ports of a host: the name tells two running pages apart.
    cookie = f"scae-{hashlib.sha256(token.encode()).hexdigest()[:8]}"
    api = APIRouter(prefix="/api", dependencies=[Depends(own_page(token, cookie))])
    images = isinstance(loaded.model, StackedCapsuleAutoencoder)
    view = ImageView(loaded, data_dir) if images else PointView(loaded)
    api.get("/model")(view.describe)
    api.get("/example")(view.example)
    api.post("/explain")(view.explain)
    if isinstance(view, ImageView):
        api.post("/move")(view.move)
    app.include_router(api)

    @app.get("/")
    async def index(token_given: Annotated[str | None, Query(alias="token")] = None) -> Response:
        """The page; with the token in the address, first a cookie and an address without."""
        if token_given is None:
            return FileResponse(PAGE / "index.html")
        if not same(token_given, token):
            raise HTTPException(401, NO_TOKEN)
        response = RedirectResponse("/", 303)
        response.set_cookie(cookie, token, httponly=True, samesite="strict")
        return response

    mimetypes.add_type("text/javascript", ".js")  # some systems say text/plain
    app.mount("/", StaticFiles(directory=PAGE))
    app.add_exception_handler(ScaeError, refused)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY)
    # Other names could be pointed at this address by a stranger (DNS rebinding).
    names = [*LOOPBACK, host, socket.gethostname()]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    app.middleware("http")(add_headers)
    return app


def own_page(token: str, cookie: str) -> Callable[[Request, Bearer], Awaitable[None]]:
    """A dependency that lets pass only our own page, or a script, with the token."""

    async def check(request: Request, bearer: Bearer) -> None:
        headers = request.headers
        own = f"{request.url.scheme}://{headers.get('host')}"
        site = headers.get("sec-fetch-site", "none")
        if headers.get("origin", own) != own or site not in ("none", "same-origin"):
            raise HTTPException(403, "Requests from other pages are refused.")
        given = bearer.credentials if bearer else request.cookies.get(cookie, "")
        if not same(given, token):
            raise HTTPException(401, NO_TOKEN)

    return check


def same(given: str, token: str) -> bool:
    """Compare in a time that tells nothing about the token."""
    return secrets.compare_digest(given.encode(), token.encode())


async def add_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Send the headers with every answer, refusals included."""
    response = await call_next(request)
    response.headers.update(HEADERS)
    return response


async def refused(_: Request, error: Exception) -> JSONResponse:
    """A question that cannot be answered, in a sentence."""
    return JSONResponse({"detail": str(error)}, 422)


async def malformed(_: Request, error: Exception) -> JSONResponse:
    """The first problem of a request in a sentence; what was sent is never repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"][1:] if first["type"] != "extra_forbidden")
    sentence = f"{where}: {first['msg']}." if where else f"{first['msg']}."
    return JSONResponse({"detail": sentence}, 422)


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
    # For one picture a second thread gains little, and loses much where processors are busy.
    torch.set_num_threads(1)
    with listen(host, port) as listening:
        app = create_app(loaded, token, host, data_dir)
        reached = "127.0.0.1" if host == "0.0.0.0" else host
        address = f"http://{reached}:{listening.getsockname()[1]}/?token={token}"
        print(f"Open {address}\nStop with Ctrl-C.", flush=True)
        if host not in LOOPBACK:
            print(f"Other machines may reach this page: it listens on {host}.", flush=True)
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
    try:
        listening = socket.create_server((host, port), backlog=MAX_CONNECTIONS)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScaeError(
            f"Cannot listen on {host} port {port} ({reason}); choose another --port or --host."
        ) from None
    # Connections inherit it; asyncio does not set it on them, and each answer would wait 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
