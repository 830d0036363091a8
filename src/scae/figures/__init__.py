"""Figures of the paper, and some it could not show, from any run or loaded model.

`make_all` draws and saves what applies to a model; the functions below draw one figure each
and return it as a matplotlib figure that carries its title and caption.
"""

from scae.figures.curves import curves_figure
from scae.figures.embedding import Embedding, embed, tsne_figure
from scae.figures.make import FIGURES, make_all
from scae.figures.reconstructions import (
    Decomposition,
    decompose,
    edges_figure,
    reconstructions_figure,
)
from scae.figures.scenes import SegmentedScenes, constellations_figure, segment_scenes
from scae.figures.style import CaptionedFigure, save
from scae.figures.sweeps import image_sweep_figure, point_sweep_figure
from scae.figures.templates import drawn_alone, part_poses_figure, templates_figure
from scae.figures.usage import confusion_figure, usage_figure

__all__ = [
    "make_all",
    "FIGURES",
    "save",
    "CaptionedFigure",
    "tsne_figure",
    "embed",
    "Embedding",
    "constellations_figure",
    "segment_scenes",
    "SegmentedScenes",
    "templates_figure",
    "drawn_alone",
    "part_poses_figure",
    "reconstructions_figure",
    "edges_figure",
    "decompose",
    "Decomposition",
    "image_sweep_figure",
    "point_sweep_figure",
    "curves_figure",
    "usage_figure",
    "confusion_figure",
]
