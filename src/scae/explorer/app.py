"""The web application: static files, and questions to one model for those who have the token."""

import base64
import hashlib
import mimetypes
import secrets
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from scae.api import Loaded
from scae.config import ConstellationExperiment, ImageExperiment
from scae.errors import ScaeError
from scae.explorer.image_view import ImageView
from scae.explorer.messages import ImageQuestion, MoveQuestion, PointQuestion
from scae.explorer.pictures import PresenceMap, find_pictures, picture
from scae.explorer.point_view import PointView
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder

PAGE = Path(__file__).parent / "page"
MAX_BODY = 1_000_000
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
# Light strokes on black: pictures for these models are prepared like digits.
STROKE_DATASETS = ("mnist", "mnist40", "digits", "affnist", "affnist-style")
NO_TOKEN = "Open the address that `scae explore` printed: it carries the token of this page."

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Index = Annotated[int, Query(ge=0, lt=2**31)]


def create_app(
    loaded: Loaded, token: str, host: str = "127.0.0.1", data_dir: Path | None = None
) -> FastAPI:
    """The application for one model; `host` is the address it is reached by."""
    # FastAPI's own pages would load scripts from elsewhere.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # Cookies are shared by all ports of a host: the name tells two running pages apart.
    cookie = f"scae-{hashlib.sha256(token.encode()).hexdigest()[:8]}"
    api = APIRouter(prefix="/api", dependencies=[Depends(own_page(token, cookie))])
    model, experiment = loaded.model, loaded.experiment
    if isinstance(model, ConstellationAutoencoder):
        assert isinstance(experiment, ConstellationExperiment)
        add_points(api, model, experiment)
    else:
        assert isinstance(experiment, ImageExperiment)
        add_images(api, model, experiment, data_dir)
    app.include_router(api)

    @app.get("/")
    def index(token_given: Annotated[str | None, Query(alias="token")] = None) -> Response:
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
    app.middleware("http")(bounded)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=host_names(host), www_redirect=False)
    return app


def add_images(
    api: APIRouter,
    model: StackedCapsuleAutoencoder,
    experiment: ImageExperiment,
    data_dir: Path | None,
) -> None:
    """Questions to a model of images."""
    view = ImageView(model)
    view.explain(ImageQuestion(pixels=base64.b64encode(bytes(view.size))))  # the first is slow
    data = find_pictures(experiment, data_dir)
    presence_map = None if data is None else PresenceMap(view, data)
    about = {
        **view.describe(),
        "name": experiment.name,
        "strokes": model.config.channels == 1 and experiment.data.name in STROKE_DATASETS,
        "pictures": 0 if data is None else len(data),
        "dataset": "" if data is None else data.name,
    }

    @api.get("/model")
    def describe() -> dict[str, Any]:
        return about

    @api.post("/explain")
    def explain(question: ImageQuestion) -> dict[str, Any]:
        return view.explain(question)

    @api.post("/move")
    def move(question: MoveQuestion) -> dict[str, Any]:
        return view.move(question)

    @api.get("/picture")
    def pick(index: Index) -> dict[str, str]:
        if data is None or index >= len(data):
            raise HTTPException(404, "There is no such picture.")
        pixels, label = picture(data, index)
        return {"pixels": base64.b64encode(pixels).decode(), "label": label}

    @api.get("/map")
    def show_map() -> dict[str, Any]:
        if presence_map is None:
            raise HTTPException(404, "There are no pictures to map.")
        return presence_map.get()


def add_points(
    api: APIRouter, model: ConstellationAutoencoder, experiment: ConstellationExperiment
) -> None:
    """Questions to a model of points."""
    view = PointView(model, experiment)
    view.explain(PointQuestion(points=((0.0, 0.0),)))  # the first is slow
    about = {**view.describe(), "name": experiment.name}

    @api.get("/model")
    def describe() -> dict[str, Any]:
        return about

    @api.post("/explain")
    def explain(question: PointQuestion) -> dict[str, Any]:
        return view.explain(question)

    @api.get("/scene")
    def scene(index: Index) -> dict[str, Any]:
        return {"points": view.example(index % about["examples"])}


def own_page(token: str, cookie: str) -> Callable[[Request, Bearer], None]:
    """A dependency that lets pass only our own page, or a script, with the token."""

    def check(request: Request, bearer: Bearer) -> None:
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


async def bounded(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Refuse bodies that are large or of unknown length; send the headers with every answer."""
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers or not length.isdecimal():
        response: Response = JSONResponse({"detail": "The request has no length."}, 411)
    elif int(length) > MAX_BODY:
        sentence = f"The request is larger than {MAX_BODY // 1000} kB."
        response = JSONResponse({"detail": sentence}, 413)
    else:
        response = await call_next(request)
    response.headers.update(HEADERS)
    return response


def refused(_: Request, error: Exception) -> JSONResponse:
    """A question that cannot be answered, in a sentence."""
    return JSONResponse({"detail": str(error)}, 422)


def malformed(_: Request, error: Exception) -> JSONResponse:
    """The first problem of a request in a sentence; what was sent is never repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"][1:] if first["type"] != "extra_forbidden")
    sentence = f"{where}: {first['msg']}." if where else f"{first['msg']}."
    return JSONResponse({"detail": sentence}, 422)


def host_names(host: str) -> list[str]:
    """Names the page answers to, so that no other name can be pointed at it (DNS rebinding)."""
    if host not in ("0.0.0.0", "::"):
        return [*LOOPBACK, host, f"[{host}]"]
    name = socket.gethostname()
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    except OSError:
        addresses = set()
    return [*LOOPBACK, name, *addresses, *(f"[{address}]" for address in addresses)]
