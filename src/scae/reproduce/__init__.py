"""The paper's tables, made again: `reproduce` trains what is missing and writes the table."""

from scae.reproduce.reproduce import Reproduction, reproduce
from scae.reproduce.results_page import results_page

__all__ = ["reproduce", "Reproduction", "results_page"]
