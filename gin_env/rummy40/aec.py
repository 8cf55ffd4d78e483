"""The PettingZoo environment of Rummy40: all seats, one to move at a time.

>>> from gin_env.rummy40 import aec
>>> env = aec.env(rules="rummy40:seats=4")
>>> env.reset(seed=1)
>>> for agent in env.agent_iter():
...     observation, reward, terminated, truncated, info = env.last()
...     over = terminated or truncated
...     env.step(None if over else env.action_space(agent).sample(observation["action_mask"]))
"""

from typing import Any

import pettingzoo
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from gin_env.aec import TurnsAEC
from gin_env.rummy40 import engine
from gin_env.rummy40.game import RUMMY40
from gin_env.rummy40.rules import Rummy40Rules


def env(**kwargs: Any) -> AECEnv:
    """Returns the environment, with PettingZoo's check that its methods are called in order, as `gin_env.aec.env`.

    Args:
        **kwargs: As for `Rummy40AEC`.
    """
    return OrderEnforcingWrapper(Rummy40AEC(**kwargs))


class Rummy40AEC(TurnsAEC):
    """Rummy40 for the agents "seat_0" and "seat_1", with four players also "seat_2" and "seat_3".

    An observation is ``{"observation": (D,) float32, "action_mask": (A,) int8}``, from `gin_env.rummy40.view`: D and A
    are 909 and 1311 with two players, 1127 and 1987 with four. An agent that is not to move gets its own view and a
    mask of zeros, and so do all at the end.

    Rewards are the points of a hand, given to all in the step that ends it: the mean of the others' penalties less
    one's own, which sum to zero. A hand that was counted terminates, one that reached the cap on draws is truncated. In
    a match the next hand is dealt in the same step, and the episode terminates with the match.

    The mask keeps to the opening minimum: what cannot reach it is not legal. With the rules
    ``rummy40:wrong_opening=penalty`` it does not, and an agent that lays too little has to take it back, at the price
    of 20 points (``opening_penalty``).

    When a hand has ended, each agent's info says how, until that agent acts again: ``ending`` (one of
    `gin_env.rummy40.tables.ENDINGS`), ``out`` (the agent that went out, or None), ``penalties`` and ``hands`` (cards
    left, as text) by agent, ``turns``; in a match also ``scores`` by agent and ``match_winners``, the agents who have
    won it.

    Args:
        rules: Rules, or the name of a preset, alone or with changes; they say how many play.
        match: Whether an episode is a match to the rules' limit instead of one hand.
        illegal: What an illegal action does: ``"raise"`` raises `gin_env.rummy40.IllegalAction` and changes nothing;
            ``"terminate"`` ends the episode for all, with a reward of ``-illegal_penalty`` for the offender and 0 for
            the others, and ``ending`` is ``"illegal"``.
        illegal_penalty: Points. The default is more than most hands cost.
        render_mode: None; ``"ansi"``, where `render` returns the view of the seat to move as text; ``"rgb_array"``,
            where it returns a picture of it, (640, 960, 3) uint8, and needs Pillow; or ``"human"``, where each step
            prints the text.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    game = RUMMY40
    metadata: dict[str, Any] = TurnsAEC.metadata | {"name": "rummy40_v0"}

    def __init__(
        self,
        *,
        rules: Rummy40Rules | str = "rummy40",
        match: bool = False,
        illegal: str = "raise",
        illegal_penalty: float = 100.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(rules, match, illegal, illegal_penalty, render_mode)

    def _result(self) -> dict[str, Any]:
        result = engine.result(self.tables)
        assert result is not None  # only asked for when a hand has ended
        agents = self.possible_agents
        info: dict[str, Any] = {
            "ending": result.ending,
            "out": None if result.out is None else agents[result.out],
            "penalties": dict(zip(agents, result.penalties, strict=True)),
            "hands": dict(zip(agents, result.hands, strict=True)),
            "turns": result.turns,
        }
        if self.match:
            row, seats = self.tables[0], len(agents)
            info["scores"] = dict(zip(agents, row["scores"][:seats].tolist(), strict=True))
            won = row["match_winners"][:seats].tolist()
            info["match_winners"] = [agent for agent, winner in zip(agents, won, strict=True) if winner]
        return info


raw_env = Rummy40AEC  # PettingZoo's name for it

# As in `gin_env.aec`.
if hasattr(pettingzoo, "register") and "gin_env/rummy40-v0" not in pettingzoo.aec_registry:
    pettingzoo.register("aec", "gin_env/rummy40_v0", entry_point="gin_env.rummy40.aec:env")
