"""Players of gin rummy and of Rummy40: they see a view and a mask, never the tables."""

from agents import baselines as _baselines  # these register their players  # noqa: F401
from agents import bundle as _bundle  # noqa: F401
from agents import external as _external  # noqa: F401
from agents import lookahead as _lookahead  # noqa: F401
from agents import peers as _peers  # noqa: F401
from agents import rummy40 as _rummy40  # noqa: F401
from agents import search as _search  # noqa: F401
from agents import strategist as _strategist  # noqa: F401
from agents.base import Agent, make, names, register

__all__ = ["Agent", "make", "names", "register"]
