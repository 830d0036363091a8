"""The routes of the page: a few fixed files, and questions to one model."""

import base64
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from scae.api import Loaded, load_source
from scae.config import ConstellationExperiment
from scae.explorer import problems
from scae.explorer.access import Access, check_token
from scae.explorer.assets import read_assets
from scae.explorer.guard import Guard
from scae.explorer.image_view import ImageView
from scae.explorer.limits import Limits
from scae.explorer.messages import ImageQuestion, PointQuestion
from scae.explorer.pictures import PresenceMap, at_hand, picture
from scae.explorer.point_view import PointView
from scae.explorer.problems import RequestError
from scae.explorer.uploads import read_picture
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder

INK_DATA = ("mnist", "mnist40", "digits", "affnist", "affnist-style")
"""Data sets of light strokes on black: pictures for their models are treated like digits."""
MAX_INDEX = 10_000_000

Index = Annotated[int, Query(ge=0, lt=MAX_INDEX)]


def app(
    source: Loaded | str | Path,
    *,
    token: str,
    host: str = "127.0.0.1",
    port: int | None = None,
    data_dir: Path | str | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """The page's server for one model, as an ASGI application.

    `host` and `port` are those it is reached by; requests for others are refused.
    """
    loaded = source if isinstance(source, Loaded) else load_source(source)
    # FastAPI's own pages would load scripts from elsewhere.
    page = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    problems.install(page)
    _serve_assets(page)
    if isinstance(loaded.model, ConstellationAutoencoder):
        _serve_points(page, loaded, loaded.model)
    else:
        _serve_images(page, loaded, loaded.model, None if data_dir is None else Path(data_dir))
    # Outermost, so that not even an unknown address is told apart without the token.
    page.add_middleware(
        Guard, access=Access(check_token(token), host, port), limits=limits or Limits()
    )
    return page


def _serve_assets(page: FastAPI) -> None:
    """Every file has a route of its own, read at the start: no request reads the disk."""
    for path, (kind, content) in read_assets().items():
        page.add_route(path, partial(_send, content, kind), methods=["GET"])


async def _send(content: bytes, kind: str, _: Request) -> Response:
    return Response(content, media_type=kind)


def _serve_images(
    page: FastAPI, loaded: Loaded, model: StackedCapsuleAutoencoder, data_dir: Path | None
) -> None:
    view = ImageView(model)
    view.warm_up()
    experiment = loaded.experiment
    assert not isinstance(experiment, ConstellationExperiment)
    data = at_hand(experiment, data_dir)
    digits = model.config.channels == 1 and experiment.data.name in INK_DATA
    placed = None if data is None else PresenceMap(model, data)
    about = {
        **view.describe(),
        "name": experiment.name,
        "digits": digits,
        "pictures": 0 if data is None else len(data),
        "pictures_from": "" if data is None else data.name,
    }

    @page.get("/api/model")
    def describe() -> dict[str, Any]:
        return about

    @page.post("/api/explain")
    def explain(question: ImageQuestion) -> dict[str, Any]:
        return view.explain(question)

    @page.post("/api/open")
    async def open_file(request: Request) -> dict[str, str]:
        pixels, note = await run_in_threadpool(
            read_picture, await request.body(), view.shape, digits
        )
        return {"pixels": base64.b64encode(pixels).decode(), "note": note}

    @page.get("/api/picture")
    def pick(index: Index) -> dict[str, str]:
        if data is None or index >= len(data):
            raise RequestError(404, "There is no such picture at hand.")
        pixels, label = picture(data, index)
        return {"pixels": base64.b64encode(pixels).decode(), "label": label}

    @page.get("/api/map")
    def show_map() -> dict[str, Any]:
        return {"state": "none"} if placed is None else placed.answer()


def _serve_points(page: FastAPI, loaded: Loaded, model: ConstellationAutoencoder) -> None:
    assert isinstance(loaded.experiment, ConstellationExperiment)
    view = PointView(model, loaded.experiment)
    about = {**view.describe(), "name": loaded.experiment.name}

    @page.get("/api/model")
    def describe() -> dict[str, Any]:
        return about

    @page.post("/api/explain")
    def explain(question: PointQuestion) -> dict[str, Any]:
        return view.explain(question)

    @page.get("/api/scene")
    def scene(index: Index) -> dict[str, Any]:
        return {"points": view.example(index % about["examples"])}
