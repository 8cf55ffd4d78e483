"""The Gymnasium environment of Rummy40: one seat against players.

>>> import gymnasium, gin_env
>>> env = gymnasium.make("gin_env/Rummy40-v0")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from collections.abc import Sequence

from gymnasium.vector import AutoresetMode

from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.vector import OneOpponent, Rummy40VectorEnv
from gin_env.seat import SeatEnv


class Rummy40Env(SeatEnv):
    """One seat of Rummy40 against one or three opponents that the environment moves.

    It is a `gin_env.rummy40.vector.Rummy40VectorEnv` of one table; see there for observations, rewards and how episodes
    end. ``info["action_mask"]`` is (A,) int8, 1 for each legal action and all zero when the episode is over. In the
    step in which a hand ends, ``info`` also says how: ``ending``, ``out``, ``penalties`` and so on.

    ``action_space`` is ``Discrete(A)``, A = 1311 with two players, 1987 with four. Its plain ``sample()`` draws legal
    actions only, so the usual random loop ``env.step(env.action_space.sample())`` plays (see
    `gin_env.spaces.LegalActions`).

    Args:
        rules: Rules, or the name of a preset, alone or with changes; they say how many play.
        match: Whether an episode is a match to the rules' limit instead of one hand.
        opponents: One for all other seats or a list of one for each: ``"module:spec"``, an object or a function, as for
            `gin_env.rummy40.vector.Rummy40VectorEnv`.
        illegal: What an illegal action does: ``"raise"`` raises `gin_env.rummy40.IllegalAction` and changes nothing;
            ``"terminate"`` ends the episode with the reward ``-illegal_penalty``, and ``info["ending"]`` is
            ``"illegal"``.
        illegal_penalty: Points. The default is more than most hands cost.
        render_mode: None; ``"ansi"`` for text; or ``"rgb_array"`` for a picture, (640, 960, 3) uint8, which needs
            Pillow.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    def __init__(
        self,
        *,
        rules: Rummy40Rules | str = "rummy40",
        match: bool = False,
        opponents: OneOpponent | Sequence[OneOpponent] = "agents:greedy",
        illegal: str = "raise",
        illegal_penalty: float = 100.0,
        render_mode: str | None = None,
    ) -> None:
        table = Rummy40VectorEnv(
            1,
            rules=rules,
            match=match,
            opponents=opponents,
            autoreset_mode=AutoresetMode.DISABLED,
            render_mode=render_mode,
        )
        super().__init__(table, illegal, illegal_penalty)
