"""Figures of the paper, and some more, from any trained model."""

from scae.figures.make import FIGURE_LIST, make_figures

__all__ = ["make_figures", "FIGURE_LIST"]
