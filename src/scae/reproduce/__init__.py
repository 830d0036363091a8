"""The paper's tables, made again cell by cell."""

from scae.reproduce.reproduce import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
