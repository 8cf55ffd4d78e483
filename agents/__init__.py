"""Players of gin rummy: they see a view and a mask, never the tables."""

from agents import baselines as _baselines  # registers its players  # noqa: F401
from agents import external as _external  # likewise  # noqa: F401
from agents.base import Agent, make, names, register

__all__ = ["Agent", "make", "names", "register"]
