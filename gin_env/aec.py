"""The PettingZoo environment: both seats, one to move at a time.

>>> from gin_env import aec
>>> env = aec.env(rules="cardpuzzle")
>>> env.reset(seed=1)
>>> for agent in env.agent_iter():
...     observation, reward, terminated, truncated, info = env.last()
...     over = terminated or truncated
...     env.step(None if over else env.action_space(agent).sample(observation["action_mask"]))
"""

from typing import Any

import gymnasium
import numpy as np
import pettingzoo
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from gin_env import engine
from gin_env.engine import GOING_ON, HAND_ENDED
from gin_env.game import GIN, Game
from gin_env.rules import Rules
from gin_env.spaces import as_action, check_illegal, mask_space, refuse_waiting

AGENTS = ("seat_0", "seat_1")


def env(**kwargs: Any) -> AECEnv:
    """Returns the environment, with PettingZoo's check that its methods are called in order.

    PettingZoo's other wrapper for board games, which ends a game on an illegal action, is not used: the environment
    decides that itself (``illegal``), and takes back nothing the players have won before.

    Args:
        **kwargs: As for `GinRummyAEC`.
    """
    return OrderEnforcingWrapper(GinRummyAEC(**kwargs))


class TurnsAEC(AECEnv):
    """One table whose seats take turns; what the environments of both games have in common.

    Args:
        rules: The game's rules, or text that names them.
        match: As for the game's environment, and so are the others.
        illegal: What an illegal action does.
        illegal_penalty: Points.
        render_mode: None or one of the metadata's ``render_modes``.
    """

    game: Game
    metadata: dict[str, Any] = {
        "render_modes": ["ansi", "human", "rgb_array"],
        "render_fps": 1,
        "is_parallelizable": False,
    }

    def __init__(self, rules: Any, match: bool, illegal: str, illegal_penalty: float, render_mode: str | None) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected None, 'ansi', 'human' or 'rgb_array'")
        self.rules = self.game.as_rules(rules)
        self.match = match
        self.illegal, self.illegal_penalty = check_illegal(illegal, illegal_penalty)
        self.render_mode = render_mode
        self.tables = self.game.engine.new_tables(self.rules, 1, match=match)

        self.possible_agents = [f"seat_{seat}" for seat in range(self.game.num_seats(self.rules))]
        self.agents: list[str] = []
        num_actions = self.rules.num_actions
        self.observation_spaces = {
            agent: spaces.Dict(
                {"observation": self.game.observation_space(self.rules), "action_mask": mask_space(num_actions)}
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(num_actions) for agent in self.possible_agents}
        self.state_space = self.game.state_space(self.rules)
        self._keyed = False  # whether a seed, given or drawn, has set the key of the deals

    def _result(self) -> dict[str, Any]:
        """Returns what each agent is told when a hand has ended."""
        raise NotImplementedError

    def observation_space(self, agent: str) -> spaces.Space:
        """Returns the agent's observation space, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Returns the agent's action space, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts an episode.

        Args:
            seed: Decides every deal. None goes on with deals that follow from the last seed, none of them seen before.
            options: ``deck``, the order of the cards, and ``dealer``, a seat: a given deal, as in
                the engine's ``deal``. Others are ignored.

        Raises:
            ValueError: If the seed is out of range, or an option does not fit.
        """
        if seed is None and not self._keyed:
            seed = int(seeding.np_random()[0].integers(1 << 63))
        if seed is not None:
            self.tables["key"] = self.game.engine.mix_keys(seed, np.zeros(1, dtype=np.uint64))
            self.tables["hand_number"] = -1
            self._keyed = True
        self.game.end_matches(self.tables, [0])
        options = options or {}
        self.game.engine.deal(self.tables, decks=options.get("deck"), dealers=options.get("dealer"))

        self.agents = list(self.possible_agents)
        self.agent_selection = self._mover()
        self._skip_agent_selection = None
        self.rewards = dict.fromkeys(self.possible_agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.possible_agents, 0.0)
        self.terminations = dict.fromkeys(self.possible_agents, False)
        self.truncations = dict.fromkeys(self.possible_agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.possible_agents}
        if self.render_mode == "human":
            self.render()

    def step(self, action: Any) -> None:
        """Plays an action of the agent to move; None, and nothing else, for an agent whose episode is over.

        Raises:
            IllegalAction: The engine's, if the action is illegal, unless ``illegal="terminate"``; nothing has changed.
            TypeError: If the action is not an integer.
            ValueError: If an agent whose episode is over plays anything but None.
            gymnasium.error.ResetNeeded: If no agent is left.
        """
        if not self.agents:
            raise gymnasium.error.ResetNeeded("the episode is over; reset first")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        action = as_action(action)
        try:
            refuse_waiting(self.tables, [0], np.array([action]), self.game.engine.refusal)
            points, over = self.game.engine.step(self.tables, [action])
        except self.game.engine.IllegalAction:
            if self.illegal == "raise":
                raise
            self._clear_before_step(agent)
            self._end_illegally(agent, action)
        else:
            self._clear_before_step(agent)
            if over[0] != GOING_ON:
                self._end_hand(points[0].tolist(), goes_on=over[0] == HAND_ENDED)
            self.agent_selection = self._mover()
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """Returns what an agent may know, whether it is to move or not."""
        observations, masks = self.game.view.look(self.tables, self.possible_agents.index(agent))
        if any(self.terminations.values()):
            # After an illegal action the hand itself is not over.
            masks[:] = 0
        return {"observation": observations[0], "action_mask": masks[0]}

    def state(self) -> np.ndarray:
        """Returns the hidden state, for a centralised critic, float32: see the game's ``view.state``."""
        return self.game.view.state(self.tables)[0]

    def record(self) -> str:
        """Returns the hand so far as a line of text, which the game's ``engine.replay`` plays again."""
        return self.game.table_record(self.tables).line()

    def render(self) -> str | np.ndarray | None:
        """Returns (or in render mode "human" prints) the view of the seat to move.

        Raises:
            ImportError: In render mode "rgb_array", if Pillow is not installed.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without a render mode: env(render_mode='ansi')")
            return None
        view = self.game.view.observe(self.tables)[0]
        if self.render_mode == "rgb_array":
            return self.game.render_picture(view)
        text = self.game.render_text(view)
        if self.render_mode == "ansi":
            return text
        print(text, end="\n\n")
        return None

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def _mover(self) -> str:
        return self.possible_agents[int(self.tables["mover"][0])]

    def _clear_before_step(self, agent: str) -> None:
        """The agent has seen what came to it up to here."""
        self._cumulative_rewards[agent] = 0.0
        self.infos[agent] = {}
        self.rewards = dict.fromkeys(self.possible_agents, 0.0)

    def _end_hand(self, points: list[float], goes_on: bool) -> None:
        self.rewards = {agent: float(won) for agent, won in zip(self.possible_agents, points, strict=True)}
        self.infos = {agent: self._result() for agent in self.possible_agents}
        if goes_on:
            self.game.engine.deal(self.tables)
            return
        truncated = bool(self.tables["ending"][0] == self.game.tables.TRUNCATED)
        self.terminations = dict.fromkeys(self.possible_agents, not truncated)
        self.truncations = dict.fromkeys(self.possible_agents, truncated)

    def _end_illegally(self, offender: str, action: int) -> None:
        self.rewards[offender] = -self.illegal_penalty
        self.infos = {
            agent: {"ending": "illegal", "offender": offender, "illegal_action": action}
            for agent in self.possible_agents
        }
        self.terminations = dict.fromkeys(self.possible_agents, True)


class GinRummyAEC(TurnsAEC):
    """Gin rummy for the agents "seat_0" and "seat_1".

    An observation is ``{"observation": (D,) float32, "action_mask": (A,) int8}``, from `gin_env.view`: D is 487 and A
    is 108 (`gin_env.actions`), or 753 and 449 where the rules are manual. An agent that is not to move gets its own
    view and a mask of zeros, and so do both at the end.

    Rewards are zero-sum hand points, given to both in the step that ends the hand. A hand that was scored or is dead
    terminates, one that reached the cap on draws is truncated. In a match the next hand is dealt in the same step, and
    the episode terminates with the match.

    When a hand has ended, each agent's info says how, until that agent acts again: ``ending`` (one of
    `gin_env.tables.ENDINGS`), ``knocker`` and ``winner`` (agents, or None), ``points`` of the winner, ``deadwood`` and
    ``melds`` by agent, ``layoffs`` on each of the knocker's melds, ``turns``; in a match also ``scores`` by agent and
    ``match_winner``.

    Args:
        rules: Rules, or the name of a preset.
        match: Whether an episode is a match to the rules' target instead of one hand.
        illegal: What an illegal action does: ``"raise"`` raises `gin_env.IllegalAction` and changes nothing;
            ``"terminate"`` ends the episode for both, with a reward of ``-illegal_penalty`` for the offender and 0 for
            the other, and ``ending`` is ``"illegal"``.
        illegal_penalty: Points. The default is more than nearly any hand costs.
        render_mode: None; ``"ansi"``, where `render` returns the view of the seat to move as text; ``"rgb_array"``,
            where it returns a picture of it, (640, 960, 3) uint8, and needs Pillow; or ``"human"``, where each step
            prints the text.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    game = GIN
    metadata: dict[str, Any] = TurnsAEC.metadata | {"name": "gin_rummy_v0"}

    def __init__(
        self,
        *,
        rules: Rules | str = "cardpuzzle",
        match: bool = False,
        illegal: str = "raise",
        illegal_penalty: float = 100.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(rules, match, illegal, illegal_penalty, render_mode)

    def _result(self) -> dict[str, Any]:
        result = engine.result(self.tables)
        assert result is not None  # only asked for when a hand has ended

        def agent(seat: int | None) -> str | None:
            return None if seat is None else AGENTS[seat]

        info: dict[str, Any] = {
            "ending": result.ending,
            "knocker": agent(result.knocker),
            "winner": agent(result.winner),
            "points": result.points,
            "deadwood": dict(zip(AGENTS, result.deadwood, strict=True)),
            "melds": dict(zip(AGENTS, result.melds, strict=True)),
            "layoffs": result.layoffs,
            "turns": result.turns,
        }
        if self.match:
            winner = int(self.tables["match_winner"][0])
            info["scores"] = dict(zip(AGENTS, self.tables["scores"][0].tolist(), strict=True))
            info["match_winner"] = agent(None if winner < 0 else winner)
        return info


raw_env = GinRummyAEC  # PettingZoo's name for it

# PettingZoo has a registry since 1.27, two dictionaries of which one is for environments with turns.
if hasattr(pettingzoo, "register") and "gin_env/gin_rummy-v0" not in pettingzoo.aec_registry:
    pettingzoo.register("aec", "gin_env/gin_rummy_v0", entry_point="gin_env.aec:env")
