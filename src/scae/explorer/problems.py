"""What the page's server answers when it cannot do what it was asked: one clear sentence."""

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from scae.errors import ScaeError

log = logging.getLogger("scae.explorer")

STATUS_SENTENCES = {
    400: "The request could not be read as JSON.",
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    422: "The request does not have the expected form.",
}


class RequestError(ScaeError):
    """A refused request: an HTTP status and the sentence the page shows."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def answer(status: int, sentence: str) -> JSONResponse:
    """A sentence as the page reads it."""
    return JSONResponse({"error": sentence}, status)


def install(app: FastAPI) -> None:
    """Answer every failure of the application with a sentence, never with a traceback."""

    async def refused(_: Request, error: Exception) -> JSONResponse:
        return answer(error.status if isinstance(error, RequestError) else 422, str(error))

    async def malformed(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return answer(422, describe(error.errors()))

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return answer(error.status_code, STATUS_SENTENCES.get(error.status_code, "Refused."))

    async def unexpected(_: Request, error: Exception) -> JSONResponse:
        log.error("a request failed", exc_info=error)
        return answer(500, "The server made a mistake; its terminal says which.")

    app.add_exception_handler(ScaeError, refused)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)


def describe(errors: Sequence[Any]) -> str:
    """The first validation error as a sentence.

    What was sent is never repeated: it may be long, or not even be valid text.
    """
    if not errors:
        return STATUS_SENTENCES[422]
    first = errors[0]
    if first.get("type") == "json_invalid":
        return STATUS_SENTENCES[400]
    # Names of unknown fields come from the sender; only ours and positions are repeated.
    known = first.get("type") != "extra_forbidden"
    where = [str(step) for step in first.get("loc", ())[1:] if known or isinstance(step, int)]
    message = str(first.get("msg", "is not valid")).removeprefix("Value error, ").rstrip(".")
    if not known:
        message = "There is a field that this address does not know"
    return f"`{'.'.join(where)}`: {message}." if where else f"{message}."
