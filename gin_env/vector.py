"""The vector environment: one learner at N tables against one batched opponent, straight on the engine.

>>> import gymnasium, gin_env
>>> envs = gymnasium.make_vec("gin_env/GinRummy-v0", num_envs=64, opponent="agents:greedy")
>>> observations, infos = envs.reset(seed=1)
>>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
"""

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from gin_env.engine import EPISODE_ENDED, GOING_ON, HAND_ENDED, NO_ACTION
from gin_env.game import GIN, Game
from gin_env.rules import Rules
from gin_env.spaces import BatchedLegalActions, LegalActions, refuse_waiting
from gin_env.tables import ENDINGS
from gin_env.view import View

LEARNER, OPPONENT = 0, 1  # seats

# The number from which the opponents' seed is made; tables are numbered far below it.
_OPPONENT_STREAM = 1 << 63
_MOST_SKIPPED = 1000


class Opponent(Protocol):
    """What the environment needs of an opponent; `agents.base.Agent` is one."""

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """Returns (K,) action ids for (K,) views, (K, A) masks and (K,) uint64 random keys."""
        ...


OpponentFunction = Callable[[View, np.ndarray, np.ndarray], np.ndarray]


class FunctionOpponent:
    """An opponent that is a function of the arguments of `Opponent.act`.

    It can be pickled where the function can: plain pickle needs one that its module knows by name.

    Args:
        function: Returns (K,) action ids for (K,) views, (K, A) masks and (K,) uint64 random keys.
    """

    def __init__(self, function: OpponentFunction) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"FunctionOpponent({self.name})"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """Returns what the function returns."""
        return self.function(view, mask, rng)


def as_opponent(opponent: "str | Opponent | OpponentFunction", game: str = "gin") -> Opponent:
    """Returns an opponent given as an object, as a function, or as ``"module:spec"``, which is ``module.make(spec)``.

    Args:
        opponent: What is given.
        game: What it is to play: ``make(spec, game=game)`` where that is not gin and ``make`` takes a game.

    Raises:
        ValueError: If the text does not name an opponent, or what is given cannot act, or says (by an attribute
            ``game``) that it plays another game.
    """
    if isinstance(opponent, str):
        name, colon, spec = opponent.partition(":")
        if not colon or not name or not spec:
            raise ValueError(f"opponent {opponent!r} is not of the form 'module:spec', such as 'agents:greedy'")
        try:
            make = importlib.import_module(name).make
        except (ImportError, AttributeError) as error:
            raise ValueError(f"opponent {opponent!r}: no function make in module {name!r}: {error}") from error
        takes_game = game != "gin" and "game" in inspect.signature(make).parameters
        opponent = make(spec, game=game) if takes_game else make(spec)
    # A class can be called and may have an `act`, and neither is of use before there is an object of it.
    if not isinstance(opponent, type):
        plays = getattr(opponent, "game", game)
        if plays != game:
            raise ValueError(f"opponent {opponent!r} plays {plays}; expected one that plays {game}")
        if callable(getattr(opponent, "act", None)):
            return opponent  # type: ignore[return-value]
        if callable(opponent):
            return FunctionOpponent(opponent)
    raise ValueError(
        f"opponent {opponent!r} has no method act(view, mask, rng) and is no function of the same arguments"
    )


class LearnerVectorEnv(VectorEnv):
    """N tables with a learner at seat 0 of each; what the vector environments of both games have in common.

    Args:
        num_envs: Number of tables.
        rules: The game's rules, or text that names them.
        match: As for the game's environment, and so are the others.
        opponents: Who has the other seats: one for each, from seat 1 on. One that is there twice acts for both at once.
        autoreset_mode: What happens after the end of an episode.
        copy: Whether each call returns new arrays.
        render_mode: None or one of the metadata's ``render_modes``.
    """

    game: Game
    metadata: dict[str, Any] = {
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        rules: Any,
        match: bool,
        opponents: Sequence[Opponent],
        autoreset_mode: AutoresetMode | str,
        copy: bool,
        render_mode: str | None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected None, 'ansi' or 'rgb_array'")
        self.num_envs = num_envs
        self.rules = self.game.as_rules(rules)
        self.match = match
        self.opponents = tuple(opponents)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.copy = copy
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.tables = self.game.engine.new_tables(self.rules, num_envs, match=match)

        opening = self.game.opening_mask(self.rules)
        self.single_observation_space = self.game.observation_space(self.rules)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.single_action_space = LegalActions(opening)
        self.action_space: BatchedLegalActions = BatchedLegalActions(opening, num_envs)

        self._keyed = False  # whether a seed, given or drawn, has set the keys
        self._opponent_keys = np.zeros(num_envs, dtype=np.uint64)
        self._decisions = np.zeros(num_envs, dtype=np.uint64)  # made by the opponents since their key was set
        self._over = np.zeros(num_envs, dtype=np.bool_)  # the episode has ended and the table was not reset
        self._pending = np.zeros(num_envs)  # points that the learner's next step is paid in addition
        size = self.game.view.observation_size(self.rules)
        self._observations = np.zeros((num_envs, size), dtype=np.float32)
        self._masks = np.zeros((num_envs, self.rules.num_actions), dtype=np.int8)

    def _hand_columns(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns what is told of the last hands at (K,) tables where one has ended: columns of K values or texts."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- Gymnasium's

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts new episodes.

        Args:
            seed: One seed decides every deal and every choice of a random opponent; table i gets the same cards
                whatever the number of tables. A list has a seed for each table, which then plays like the first table
                of that seed. None goes on with deals that follow from the last seed, none of them seen before.
            options: ``reset_mask``, (N,) bool: the tables to reset, the others stay as they are. ``decks``, (N, cards
                in the pack), and ``dealers``, (N,): given deals, as in the engine's ``deal``. Others are ignored.

        Raises:
            ValueError: If a seed is out of range, or an option does not fit.
        """
        options = options or {}
        rows = self._reset_rows(options.get("reset_mask"))
        decks, dealers = options.get("decks"), options.get("dealers")
        seeds = self._check_seeds(seed)
        super().reset(seed=seeds if isinstance(seeds, int) else None)
        self._set_keys(seeds, rows)
        ended = np.zeros(self.num_envs, dtype=np.bool_)
        if decks is not None:
            decks = np.asarray(decks)[rows]
            dealers = None if dealers is None else np.asarray(dealers)[rows]
        self._begin(rows, ended, decks, dealers)
        return self._look(at_opening=rows.size == self.num_envs, infos=self._hand_infos(ended))

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays the learner's actions, and the opponents' until the learner is to move again.

        Args:
            actions: (N,) action ids.

        Returns:
            Observations (N, D) float32, rewards (N,) float64 in hand points, terminated (N,) bool,
            truncated (N,) bool, and infos as described for the class.

        Raises:
            IllegalAction: The engine's, if an action is illegal; nothing has changed.
            ValueError: If the actions do not fit the tables.
            gymnasium.error.ResetNeeded: If an episode is over and was not reset.
            RuntimeError: If an opponent's action is illegal.
        """
        starting = self._over.copy()  # reset in this step (NEXT_STEP mode only; elsewhere none are over)
        rewards = self._pending.copy()
        ended = np.zeros(self.num_envs, dtype=np.bool_)
        self._play(self._check_actions(actions), rewards, ended)
        self._pending[:] = 0
        self._move_opponents(rewards, ended)

        over = self._over & ~starting
        truncated = over & (self.tables["ending"] == self.game.tables.TRUNCATED)
        terminated = over & ~truncated
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and over.any():
            infos = self._final_infos(over)
            starting = over
        if starting.any():
            self._begin(np.flatnonzero(starting), ended)
        infos.update(self._hand_infos(ended))
        observations, infos = self._look(at_opening=False, infos=infos)
        return observations, rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Returns each table as the learner sees it: as text in render mode "ansi", as a picture in "rgb_array".

        Raises:
            ImportError: In render mode "rgb_array", if Pillow is not installed.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without a render mode: make(..., render_mode='ansi')")
            return None
        draw = self.game.render_text if self.render_mode == "ansi" else self.game.render_picture
        return tuple(draw(row) for row in self.game.view.observe(self.tables, LEARNER))

    # ------------------------------------------------------------------------------------------------------- checks

    def _reset_rows(self, mask: Any) -> np.ndarray:
        if mask is None:
            return np.arange(self.num_envs)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"options['reset_mask'] is {mask!r}; expected a ({self.num_envs},) array of bool")
        if not mask.any():
            raise ValueError("options['reset_mask'] selects no table")
        if not self._keyed:
            raise gymnasium.error.ResetNeeded("reset all tables once before resetting some")
        return np.flatnonzero(mask)

    def _check_seeds(self, seed: int | Sequence[int | None] | None) -> int | list[int | None] | None:
        def check(value: Any) -> int | None:
            if value is not None and not (isinstance(value, int | np.integer) and 0 <= value < 1 << 64):
                raise ValueError(f"seed is {value!r}; expected 0 to 2**64 - 1, or None")
            return None if value is None else int(value)

        if seed is None or isinstance(seed, int | np.integer):
            return check(seed)
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds are given; expected one, or one for each of {self.num_envs} tables")
        return [check(value) for value in seed]

    def _check_actions(self, actions: ArrayLike) -> np.ndarray:
        """Returns (N,) int64 actions, NO_ACTION at the tables that are reset instead."""
        if not self._keyed:
            raise gymnasium.error.ResetNeeded("step() needs a reset() before it")
        checked = np.asarray(actions)
        if checked.shape != (self.num_envs,) or checked.dtype.kind not in "iu":
            raise ValueError(
                f"actions are {checked.dtype} of shape {checked.shape}; expected integers of shape ({self.num_envs},)"
            )
        checked = checked.astype(np.int64)
        if self._over.any():
            if self.autoreset_mode is AutoresetMode.DISABLED:
                rows = np.flatnonzero(self._over)
                raise gymnasium.error.ResetNeeded(f"the episodes at tables {rows.tolist()} are over; reset them first")
            checked[self._over] = NO_ACTION
        waiting = np.flatnonzero((checked < 0) & ~self._over).tolist()
        refuse_waiting(self.tables, waiting, checked, self.game.engine.refusal)
        return checked

    # --------------------------------------------------------------------------------------------------------- play

    def _set_keys(self, seeds: int | list[int | None] | None, rows: np.ndarray) -> None:
        """Sets what decides the deals and the opponents' choices at some tables, unless the seed is None."""
        mix_keys = self.game.engine.mix_keys

        def set_keys(seed: int, at: np.ndarray, numbers: np.ndarray) -> None:
            self.tables["key"][at] = mix_keys(seed, numbers)
            self.tables["hand_number"][at] = -1
            opponent_seed = int(mix_keys(seed, np.array([_OPPONENT_STREAM], dtype=np.uint64))[0])
            self._opponent_keys[at] = mix_keys(opponent_seed, numbers)
            self._decisions[at] = 0

        if isinstance(seeds, int):
            set_keys(seeds, rows, rows)
        elif not self._keyed:
            set_keys(int(self.np_random.integers(1 << 63)), rows, rows)
        self._keyed = True
        if isinstance(seeds, list):
            for row in rows:
                seed = seeds[row]
                if seed is not None:
                    set_keys(seed, row[np.newaxis], np.zeros(1, dtype=np.uint64))

    def _begin(
        self,
        rows: np.ndarray,
        ended: np.ndarray,
        decks: np.ndarray | None = None,
        dealers: np.ndarray | None = None,
    ) -> None:
        """Starts new episodes at some tables and plays on until the learner is to move there.

        ``ended`` is set anew for these tables: where a hand, but not the episode, has ended on the way.
        """
        for _ in range(_MOST_SKIPPED):
            self.game.end_matches(self.tables, rows)
            self.game.engine.deal(self.tables, rows, decks, dealers)
            self._over[rows] = False
            self._pending[rows] = 0
            ended[rows] = False
            self._move_opponents(self._pending, ended)
            rows = rows[self._over[rows]]
            if not rows.size:
                return
            decks = dealers = None
        raise RuntimeError(f"the opponent ended {_MOST_SKIPPED} episodes in a row before the learner could move")

    def _move_opponents(self, rewards: np.ndarray, ended: np.ndarray) -> None:
        """Moves the opponents wherever one is to move, until none is anywhere."""
        while True:
            movers = self.tables["mover"]
            rows = np.flatnonzero((movers != LEARNER) & (self.tables["phase"] != self.game.tables.OVER))
            if not rows.size:
                return
            actions = np.full(self.num_envs, NO_ACTION)
            for seat, opponent in enumerate(self.opponents, 1):
                seats = [other for other, same in enumerate(self.opponents, 1) if same is opponent]
                if seat == seats[0]:
                    self._ask(opponent, rows[np.isin(movers[rows], seats)], actions)
            try:
                refuse_waiting(self.tables, rows[actions[rows] < 0].tolist(), actions, self.game.engine.refusal)
                self._play(actions, rewards, ended)
            except self.game.engine.IllegalAction as error:
                opponent = self.opponents[error.seat - 1]
                raise RuntimeError(f"the opponent {opponent!r} chose an illegal action: {error}") from error

    def _ask(self, opponent: Opponent, rows: np.ndarray, actions: np.ndarray) -> None:
        """Writes what an opponent chooses at the tables at which it is to move into (N,) actions."""
        if not rows.size:
            return
        waiting = self.tables.take(rows)  # much faster than tables[rows]
        keys = self.game.engine.mix_keys(0, self._opponent_keys[rows] + self._decisions[rows])
        self._decisions[rows] += np.uint64(1)
        chosen = np.asarray(opponent.act(self.game.view.observe(waiting), self.game.engine.legal(waiting), keys))
        if chosen.shape != rows.shape or chosen.dtype.kind not in "iu":
            raise RuntimeError(
                f"the opponent's actions are {chosen.dtype} of shape {chosen.shape}; expected {rows.size} integers"
            )
        actions[rows] = chosen

    def _play(self, actions: np.ndarray, rewards: np.ndarray, ended: np.ndarray) -> None:
        """Plays an action at some tables and books what came of it; deals the next hand of a match."""
        points, over = self.game.engine.step(self.tables, actions)
        rewards += points[:, LEARNER]
        ended |= over != GOING_ON
        self._over |= over == EPISODE_ENDED
        matches = np.flatnonzero(over == HAND_ENDED)
        if matches.size:
            self.game.engine.deal(self.tables, matches)

    # ------------------------------------------------------------------------------------------------ what is told

    def _look(self, at_opening: bool, infos: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
        into = () if self.copy else (self._observations, self._masks)
        observations, masks = self.game.view.look(self.tables, LEARNER, *into)
        self.action_space.show(masks, at_opening)
        infos["action_mask"] = masks
        infos["_action_mask"] = np.ones(self.num_envs, dtype=np.bool_)
        return observations, infos

    def _final_infos(self, over: np.ndarray) -> dict[str, Any]:
        """Returns the last observations and infos of the episodes that are over."""
        rows = np.flatnonzero(over)
        observations, _ = self.game.view.look(self.tables.take(rows), LEARNER)
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row, observation in zip(rows, observations, strict=True):
            final_obs[row] = observation
        final_info = self._hand_infos(over)
        final_info["action_mask"] = np.zeros((self.num_envs, self.rules.num_actions), dtype=np.int8)
        final_info["_action_mask"] = over.copy()
        return {
            "final_obs": final_obs,
            "_final_obs": over.copy(),
            "final_info": final_info,
            "_final_info": over.copy(),
        }

    def _hand_infos(self, ended: np.ndarray) -> dict[str, Any]:
        """Returns how the last hands went at the tables where one has ended, in Gymnasium's batched form."""
        rows = np.flatnonzero(ended)
        if not rows.size:
            return {}
        infos: dict[str, Any] = {}
        for name, values in self._hand_columns(rows).items():
            if values.dtype == object:
                infos[name] = np.full(self.num_envs, None, dtype=object)
            else:
                infos[name] = np.zeros((self.num_envs, *values.shape[1:]), dtype=np.int64)
            infos[name][rows] = values
            infos["_" + name] = ended.copy()
        return infos


class GinRummyVectorEnv(LearnerVectorEnv):
    """N tables of gin rummy. The learner has seat 0 at each, the opponent seat 1.

    The environment moves the opponent until the learner is to move. Who deals first is drawn by the rules (by default
    at random), so the seats are alike. An episode is a hand, or with ``match=True`` a match.

    Observations are ``(N, D)`` float32 (`gin_env.view.encode`): D is 487, or 753 where the rules are manual. Actions
    are ``(N,)`` ids of the action table (`gin_env.actions`), which has A = 108 or 449. Rewards are the hand points that
    the learner wins, negative where it loses, paid in the step in which the hand ends, whoever ends it. A hand that was
    scored or is dead terminates, one that reached the cap on draws is truncated; a match only ever terminates.
    ``action_space.sample()`` draws legal actions.

    ``infos["action_mask"]`` is (N, A) int8, 1 for each legal action; all zero at a table whose episode is over. Where
    a hand ended in the step (``infos["_ending"]`` says where):

    - ``ending``: one of `gin_env.tables.ENDINGS`, as text,
    - ``winner``: 1 if the learner won, -1 if it lost, 0 for nobody,
    - ``points``: won by the winner,
    - ``own_deadwood``, ``opponent_deadwood``: points, after layoffs,
    - ``turns``: draws in the hand,
    - in matches also ``own_score``, ``opponent_score`` and ``match_winner`` (1, -1, or 0 while the match goes on).

    Autoreset follows Gymnasium: in SAME_STEP mode the last observation and infos of an ended episode are in
    ``infos["final_obs"]`` and ``infos["final_info"]``, and everything else is of the episode that has begun. In
    NEXT_STEP mode the step after the end resets the table and ignores its action. In DISABLED mode
    ``reset(options={"reset_mask": mask})`` resets.

    The opponent may end a hand before the learner had anything to decide (it takes the upcard and knocks, about once
    in a thousand hands). A single hand is then no episode, and the next is dealt; in a match its points are paid with
    the first step.

    Args:
        num_envs: Number of tables.
        rules: Rules, or the name of a preset.
        match: Whether an episode is a match to the rules' target instead of one hand.
        opponent: ``"module:spec"``, imported when the environment is made (``"agents:greedy"``, or
            ``"agents:path/to/bundle"`` for an exported bot); or an object with a method ``act(view, mask, rng)`` as in
            `agents.base.Agent`; or a function of the same arguments.
        autoreset_mode: What happens after the end of an episode.
        copy: Whether each call returns new arrays. Otherwise the next call overwrites observations and masks.
        render_mode: None; ``"ansi"`` for a text of each table as the learner sees it; or ``"rgb_array"`` for a picture,
            (640, 960, 3) uint8, which needs Pillow.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    game = GIN

    def __init__(
        self,
        num_envs: int = 1,
        *,
        rules: Rules | str = "cardpuzzle",
        match: bool = False,
        opponent: str | Opponent | OpponentFunction = "agents:greedy",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(num_envs, rules, match, [as_opponent(opponent)], autoreset_mode, copy, render_mode)

    @property
    def opponent(self) -> Opponent:
        """Who has seat 1 at every table."""
        return self.opponents[0]

    @opponent.setter
    def opponent(self, opponent: Opponent) -> None:
        self.opponents = (opponent,)

    def _hand_columns(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        tables = self.tables
        sign = np.array([1, -1, 0])  # by seat; the last is for NOBODY, which is -1
        columns: dict[str, np.ndarray] = {
            "ending": np.array(ENDINGS, dtype=object)[tables["ending"][rows]],
            "winner": sign[tables["winner"][rows]],
            "points": tables["points"][rows],
            "own_deadwood": tables["deadwood"][rows, LEARNER],
            "opponent_deadwood": tables["deadwood"][rows, OPPONENT],
            "turns": tables["num_turns"][rows],
        }
        if self.match:
            columns["own_score"] = tables["scores"][rows, LEARNER]
            columns["opponent_score"] = tables["scores"][rows, OPPONENT]
            columns["match_winner"] = sign[tables["match_winner"][rows]]
        return columns
