"""Figures of the paper, and some more, from any trained model."""

from scae.figures.make import FIGURE_LIST, IMAGE_FIGURES, POINT_FIGURES, make_figures

__all__ = ["make_figures", "IMAGE_FIGURES", "POINT_FIGURES", "FIGURE_LIST"]
