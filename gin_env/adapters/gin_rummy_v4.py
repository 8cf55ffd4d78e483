"""PettingZoo's ``gin_rummy_v4`` on this engine: the agents, actions, observations and rewards of the one it removed.

Code that was written for it runs with another import:

    >>> from gin_env.adapters import gin_rummy_v4  # was: from pettingzoo.classic import gin_rummy_v4
    >>> env = gin_rummy_v4.env(knock_reward=0.5, gin_reward=1.0)
    >>> env.reset(seed=42)
    >>> for agent in env.agent_iter():
    ...     observation, reward, terminated, truncated, info = env.last()
    ...     over = terminated or truncated
    ...     env.step(None if over else env.action_space(agent).sample(observation["action_mask"]))

It is gin rummy as RLCard plays it: the player who does not deal gets eleven cards and throws first, gin is forced, a
knock is met by no layoffs, and when all is over each player counts its own hand by an action. Beyond this the
interface does not reach; `gin_env.aec` has the whole game.

What is wrong in the original is right here: a player who waits sees its own hand and a mask of zeros, a seed decides
the deal and changes no rewards, a pickled environment goes on where it was.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from gin_env import engine
from gin_env.actions import DISCARD as OUR_DISCARD
from gin_env.actions import DRAW as OUR_DRAW
from gin_env.actions import KNOCK as OUR_KNOCK
from gin_env.actions import TAKE as OUR_TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, card_name, to_mask
from gin_env.melds import deadwood, deadwood_after
from gin_env.picture import render_picture
from gin_env.render import render_text
from gin_env.rules import Rules
from gin_env.showdown import end_unscored
from gin_env.spaces import as_action
from gin_env.tables import DEAD, DRAW_ANY, GINNED, NOBODY
from gin_env.view import observe

AGENTS = ("player_0", "player_1")

# The actions.
SCORE = 0  # plus the number of the player who counts its hand
DRAW = 2
PICK_UP = 3
DECLARE_DEAD = 4
GIN = 5
DISCARD = 6  # plus the card
KNOCK = DISCARD + NUM_CARDS  # plus the card
NUM_ACTIONS = KNOCK + NUM_CARDS
_WORDS = ("score player 0", "score player 1", "draw", "pick up", "declare dead", "gin")

# The stock is not drawn from when this few cards are left: take the discard, or declare the hand dead.
LAST_CARDS = 2
# A hand with so many moves, the deal and each draw and throw counted, can only be declared dead.
MAX_MOVES = 200

# Wall and cap are not the engine's but the two above. Points count where they are the rewards.
RULES = Rules(name="gin_rummy_v4", big_gin_bonus=None, rediscard=True, stock_floor=0, target=None)

_CARDS = np.arange(NUM_CARDS, dtype=np.uint64)


def env(**kwargs: Any) -> AECEnv:
    """Returns the environment in the wrappers that the original has: an illegal move ends the hand at -1.

    Args:
        **kwargs: As for `GinRummyV4`.
    """
    wrapped: AECEnv = wrappers.TerminateIllegalWrapper(GinRummyV4(**kwargs), illegal_reward=-1)
    wrapped = wrappers.AssertOutOfBoundsWrapper(wrapped)
    return wrappers.OrderEnforcingWrapper(wrapped)


def action_name(action: int) -> str:
    """Returns an action's name, such as ``discard TD``.

    Raises:
        ValueError: If ``action`` is not 0 to 109.
    """
    if not 0 <= action < NUM_ACTIONS:
        raise ValueError(f"action {action} is not one of 0 to {NUM_ACTIONS - 1}")
    if action < DISCARD:
        return _WORDS[action]
    word, card = ("discard", action - DISCARD) if action < KNOCK else ("knock", action - KNOCK)
    return f"{word} {card_name(card)}"


class GinRummyV4(AECEnv):
    """RLCard's gin rummy for the agents "player_0" and "player_1", without wrappers.

    An observation is ``{"observation": (4, 52) int8, "action_mask": (110,) int8}``. The planes are the own hand, the
    top of the discard pile, the cards below it, and the cards known to be in the opponent's hand, each card at suit *
    13 + rank, suits S H D C, ace first. With ``opponents_hand_visible`` there is a fifth, in spite of the name: the
    cards that may be in the stock or in the opponent's hand.

    When a player knocks, has gin or declares the hand dead, player_0 plays action 0 and player_1 action 1; then both
    are terminated and have their rewards.

    Args:
        knock_reward: Of a player who knocks.
        gin_reward: Of a player who has gin. All others, both players in a dead hand, get minus a hundredth of their
            deadwood.
        opponents_hand_visible: Whether there is a fifth plane.
        render_mode: As for `gin_env.aec.GinRummyAEC`.
        screen_height: Accepted and not used: pictures have one size.
        rewards: ``"documented"``, as above; or ``"points"``, zero-sum hand points as this project scores a hand
            (layoffs, undercuts and the bonus for gin included), 0 in a dead hand.

    Raises:
        ValueError: If the render mode or the kind of rewards does not exist.
    """

    metadata: dict[str, Any] = {
        "name": "gin_rummy_v4",
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 1,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        knock_reward: float = 0.5,
        gin_reward: float = 1.0,
        opponents_hand_visible: bool | None = False,
        render_mode: str | None = None,
        screen_height: int | None = 1000,
        *,
        rewards: str = "documented",
    ) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected None, 'human', 'rgb_array' or 'ansi'")
        if rewards not in ("documented", "points"):
            raise ValueError(f"rewards are {rewards!r}; expected 'documented' or 'points'")
        self.knock_reward, self.gin_reward = float(knock_reward), float(gin_reward)
        self.points = rewards == "points"
        self.num_planes = 5 if opponents_hand_visible else 4
        self.render_mode = render_mode
        self.tables = engine.new_tables(RULES, 1)

        self.possible_agents = list(AGENTS)
        self.agents = list(AGENTS)
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(0, 1, shape=(self.num_planes, NUM_CARDS), dtype=np.int8),
                    "action_mask": spaces.Box(0, 1, shape=(NUM_ACTIONS,), dtype=np.int8),
                }
            )
            for agent in AGENTS
        }
        self.action_spaces = {agent: spaces.Discrete(NUM_ACTIONS) for agent in AGENTS}
        self._keyed = False  # whether a seed, given or drawn, has set the key of the deals

    def observation_space(self, agent: str) -> spaces.Space:
        """Returns the agent's observation space, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Returns the agent's action space, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deals a hand.

        Args:
            seed: Decides every deal. None goes on with deals that follow from the last seed, none of them seen before.
            options: ``deck``, the order of the cards (alternately to the player who begins and to the dealer, then the
                eleventh card of the one who begins, then the stock from its top), and ``dealer``, a seat. Others are
                ignored.

        Raises:
            ValueError: If the seed is out of range, or an option does not fit.
        """
        if seed is None and not self._keyed:
            seed = int(seeding.np_random()[0].integers(1 << 63))
        if seed is not None:
            self.tables["key"] = engine.mix_keys(seed, np.zeros(1, dtype=np.uint64))
            self.tables["hand_number"] = -1
            self._keyed = True
        options = options or {}
        engine.deal(self.tables, decks=options.get("deck"), dealers=options.get("dealer"))
        # Eleven cards to the player who begins: the upcard is its eleventh, which nobody has seen.
        engine.step(self.tables, [OUR_TAKE])
        self.tables["known"] = 0
        self.tables["taken"] = NO_CARD

        self._scorers: list[str] = []  # who has yet to count, once the hand is over
        self._scoring = False
        self.agents = list(AGENTS)
        self.agent_selection = AGENTS[int(self.tables["mover"][0])]
        # Left over where an episode was given up while its agents were being stepped out.
        self._skip_agent_selection = None
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in AGENTS}
        if self.render_mode == "human":
            self.render()

    def step(self, action: Any) -> None:
        """Plays an action of the agent to move; None, and nothing else, for an agent whose hand is over.

        Raises:
            ValueError: If the action is illegal (`env` ends the hand instead), or an agent whose hand is over plays
                anything but None. Nothing has changed.
            TypeError: If the action is not an integer.
            gymnasium.error.ResetNeeded: If no agent is left.
        """
        if not self.agents:
            raise gymnasium.error.ResetNeeded("the hand is over; reset first")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        action = as_action(action)
        mask = self._legal()
        if not 0 <= action < NUM_ACTIONS or not mask[action]:
            asked = repr(action_name(action)) if 0 <= action < NUM_ACTIONS else "which does not exist"
            legal = ", ".join(action_name(other) for other in np.flatnonzero(mask).tolist())
            raise ValueError(f"{agent} may not play action {action}, {asked}; legal: {legal}")
        self._cumulative_rewards[agent] = 0.0
        if self._scoring:
            self._scorers.remove(agent)
        else:
            self._play(action)
        if not self._scoring:
            self.agent_selection = AGENTS[int(self.tables["mover"][0])]
        elif self._scorers:
            self.agent_selection = self._scorers[0]
        else:
            self.rewards = dict(zip(AGENTS, self._final_rewards(), strict=True))
            self.terminations = dict.fromkeys(AGENTS, True)
        self._accumulate_rewards()
        if not self._scorers and self._scoring:
            self._deads_step_first()
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """Returns what an agent may know, whether it is to move or not; the mask is all zero where it is not."""
        seat = AGENTS.index(agent)
        table = self.tables[0]
        hand, known = int(table["hands"][seat]), int(table["known"][1 - seat])
        size = int(table["pile_size"])
        top, below = to_mask(table["pile"][size - 1 : size]), to_mask(table["pile"][: max(size - 1, 0)])
        unseen = int(RULES.pack) & ~(hand | known | top | below)
        planes = np.array([hand, top, below, known, unseen][: self.num_planes], dtype=np.uint64)
        moves = agent == self.agent_selection and not any(self.terminations.values())
        return {
            "observation": (planes[:, None] >> _CARDS & np.uint64(1)).astype(np.int8),
            "action_mask": self._legal() if moves else np.zeros(NUM_ACTIONS, dtype=np.int8),
        }

    def render(self) -> str | np.ndarray | None:
        """Returns (or in render mode "human" prints) the view of the seat to move.

        Raises:
            ImportError: In render mode "rgb_array", if Pillow is not installed.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without a render mode: env(render_mode='ansi')")
            return None
        view = observe(self.tables, AGENTS.index(self.agent_selection))[0]
        if self.render_mode == "rgb_array":
            return render_picture(view)
        text = render_text(view)
        if self.render_mode == "ansi":
            return text
        print(text, end="\n\n")
        return None

    def close(self) -> None:
        """Does nothing: there is nothing to release."""

    def _legal(self) -> np.ndarray:
        """Returns the mask of the agent to move."""
        mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        table = self.tables[0]
        if self._scoring:
            mask[SCORE + AGENTS.index(self.agent_selection)] = 1
        elif table["phase"] == DRAW_ANY:
            capped = table["num_moves"] >= MAX_MOVES
            goes_on = RULES.deck_size - table["stock_at"] > LAST_CARDS and not capped
            mask[DRAW if goes_on else DECLARE_DEAD] = 1
            mask[PICK_UP] = not capped
        elif self._gin_throws().size:
            mask[GIN] = 1
        else:
            mask[DISCARD:] = engine.legal(self.tables)[0, OUR_DISCARD : OUR_KNOCK + NUM_CARDS]
            # The card just picked up stays, unless it is the one to knock with.
            if table["taken"] != NO_CARD:
                mask[DISCARD + table["taken"]] = 0
        return mask

    def _gin_throws(self) -> np.ndarray:
        """Returns the cards that the mover, who has eleven, can throw to have gin."""
        table = self.tables[0]
        return np.flatnonzero(deadwood_after(table["hands"][[table["mover"]]])[0] == 0)

    def _play(self, action: int) -> None:
        """Plays an action that is legal, while the hand goes on."""
        if action == DECLARE_DEAD:
            end_unscored(self.tables[0], DEAD)
            over = True
        else:
            if action >= DISCARD:
                ours = action - DISCARD + OUR_DISCARD
            elif action == GIN:
                ours = OUR_KNOCK + int(self._gin_throws()[0])
            else:
                ours = OUR_DRAW if action == DRAW else OUR_TAKE
            over = bool(engine.step(self.tables, [ours])[1][0])
        if over:
            self._scoring, self._scorers = True, list(AGENTS)

    def _final_rewards(self) -> list[float]:
        """Returns the rewards of both, once the hand is over."""
        table = self.tables[0]
        if self.points:
            won = float(table["points"])
            return [0.0 if table["winner"] == NOBODY else won if table["winner"] == seat else -won for seat in (0, 1)]
        left = deadwood(table["final_hands"]).tolist()
        rewards = [-points / 100 for points in left]
        if table["knocker"] != NOBODY:
            rewards[table["knocker"]] = self.gin_reward if table["ending"] == GINNED else self.knock_reward
        return rewards


raw_env = GinRummyV4  # PettingZoo's name for it
