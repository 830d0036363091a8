"""A local web page to look inside a trained model: FastAPI behind, plain ES modules in front."""

from scae.explorer.app import create_app, serve

__all__ = ["create_app", "serve"]
