"""A local web page to look inside a trained model.

The server is FastAPI, the page plain ES modules; nothing is built and nothing outside is asked.
"""

from scae.explorer.application import app
from scae.explorer.server import serve

__all__ = ["app", "serve"]
