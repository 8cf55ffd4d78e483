"""The Gymnasium environment: one seat against a player.

>>> import gymnasium, gin_env
>>> env = gymnasium.make("gin_env/GinRummy-v0", opponent="agents:greedy")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from gin_env.rules import Rules
from gin_env.spaces import LegalActions, as_action, check_illegal
from gin_env.vector import LEARNER, GinRummyVectorEnv, LearnerVectorEnv, Opponent, OpponentFunction


class SeatEnv(gymnasium.Env):
    """One seat against players that the environment moves; what the environments of both games have in common.

    Args:
        table: A vector environment of one table that does not reset by itself.
        illegal: What an illegal action does, as for the game's environment.
        illegal_penalty: Points.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 1}

    def __init__(self, table: LearnerVectorEnv, illegal: str, illegal_penalty: float) -> None:
        self.illegal, self.illegal_penalty = check_illegal(illegal, illegal_penalty)
        self.table = table
        self.rules = table.rules
        self.match = table.match
        self.render_mode = table.render_mode
        self.observation_space = table.single_observation_space
        self.action_space: LegalActions = LegalActions(table.game.opening_mask(self.rules))
        self._terminated_illegally = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Decides every deal and every choice of a random opponent. None goes on with deals that follow from
                the last seed, none of them seen before.
            options: ``deck``, the order of the cards, and ``dealer``, a seat: a given deal, as in
                the engine's ``deal``; the learner has seat 0. Others are ignored.

        Raises:
            ValueError: If the seed is out of range, or an option does not fit.
        """
        super().reset(seed=seed)
        given = {name + "s": [options[name]] for name in ("deck", "dealer") if options and name in options}
        observations, infos = self.table.reset(seed=seed, options=given)
        self._terminated_illegally = False
        return observations[0], self._tell(infos, at_opening=True)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Plays an action of the learner, and the opponents' until the learner is to move again.

        Returns:
            Observation (D,) float32, reward in hand points, terminated, truncated, info.

        Raises:
            IllegalAction: The engine's, if the action is illegal, unless ``illegal="terminate"``; nothing has changed.
            TypeError: If the action is not an integer.
            gymnasium.error.ResetNeeded: If the episode is over and was not reset.
        """
        if self._terminated_illegally:
            raise gymnasium.error.ResetNeeded("the episode is over; reset first")
        action = as_action(action)
        try:
            observations, rewards, terminated, truncated, infos = self.table.step([action])
        except self.table.game.engine.IllegalAction:
            if self.illegal == "raise":
                raise
            return self._end_illegally(action)
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), self._tell(infos)

    def render(self) -> Any:
        """Returns the learner's view: as text in render mode "ansi", as a picture in "rgb_array"."""
        rendered = self.table.render()
        return None if rendered is None else rendered[0]

    def action_masks(self) -> np.ndarray:
        """Returns the legal actions, (A,) int8; the name is the one that sb3-contrib asks for."""
        return self.action_space.legal

    def _end_illegally(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._terminated_illegally = True
        observations, _ = self.table.game.view.look(self.table.tables, LEARNER)
        mask = np.zeros(self.rules.num_actions, dtype=np.int8)
        self.action_space.show(mask, at_opening=False)
        info = {"action_mask": mask, "ending": "illegal", "illegal_action": action}
        return observations[0], -self.illegal_penalty, True, False, info

    def _tell(self, infos: dict[str, Any], at_opening: bool = False) -> dict[str, Any]:
        """Returns the info of the only table, as plain values, and shows the action space what is legal."""
        info: dict[str, Any] = {}
        for name, values in infos.items():
            if not name.startswith("_") and infos["_" + name][0]:
                info[name] = values[0].item() if values.dtype.kind == "i" and values.ndim == 1 else values[0]
        self.action_space.show(info["action_mask"], at_opening)
        return info


class GinRummyEnv(SeatEnv):
    """One seat of gin rummy against an opponent that the environment moves.

    It is a `gin_env.vector.GinRummyVectorEnv` of one table; see there for observations, rewards and how episodes end.
    ``info["action_mask"]`` is (A,) int8, 1 for each legal action and all zero when the episode is over. In the step
    in which a hand ends, ``info`` also says how: ``ending``, ``winner``, ``points`` and so on.

    ``action_space`` is ``Discrete(A)``, A = 108, or 449 where the rules are manual. Its plain ``sample()`` draws legal
    actions only, so the usual random loop ``env.step(env.action_space.sample())`` plays (see
    `gin_env.spaces.LegalActions`).

    Args:
        rules: Rules, or the name of a preset.
        match: Whether an episode is a match to the rules' target instead of one hand.
        opponent: ``"module:spec"``, an object or a function, as for `gin_env.vector.GinRummyVectorEnv`.
        illegal: What an illegal action does: ``"raise"`` raises `gin_env.IllegalAction` and changes nothing;
            ``"terminate"`` ends the episode with the reward ``-illegal_penalty``, and ``info["ending"]`` is
            ``"illegal"``.
        illegal_penalty: Points. The default is more than nearly any hand costs.
        render_mode: None; ``"ansi"`` for text; or ``"rgb_array"`` for a picture, (640, 960, 3) uint8, which needs
            Pillow.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    def __init__(
        self,
        *,
        rules: Rules | str = "cardpuzzle",
        match: bool = False,
        opponent: str | Opponent | OpponentFunction = "agents:greedy",
        illegal: str = "raise",
        illegal_penalty: float = 100.0,
        render_mode: str | None = None,
    ) -> None:
        table = GinRummyVectorEnv(
            1,
            rules=rules,
            match=match,
            opponent=opponent,
            autoreset_mode=AutoresetMode.DISABLED,
            render_mode=render_mode,
        )
        super().__init__(table, illegal, illegal_penalty)
