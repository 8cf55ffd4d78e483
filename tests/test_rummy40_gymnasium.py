"""The Gymnasium doors of Rummy40. What they share with those of gin is tested in `tests.test_gymnasium`."""

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import agents
from gin_env.rummy40 import IllegalAction, engine, preset, view
from gin_env.rummy40.actions import DISCARD, DRAW, TAKE, TAKE_BACK
from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.seat import Rummy40Env
from gin_env.rummy40.vector import Rummy40VectorEnv
from gin_env.spaces import LegalActions
from tests.rummy40_hands import choose
from tests.test_gymnasium import generators, policy
from tests.test_rummy40_aec import FOUR, LITTLE, SHORT, TWO, wrong_opening

ENV = "gin_env/Rummy40-v0"
MODES = list(AutoresetMode)


class Player:
    """Plays at random, or where it is eager lays what it can; keeps which seats it was asked for."""

    def __init__(self, eager: bool = True) -> None:
        self.name = "eager" if eager else "random"
        self.eager = eager
        self.asked: list[list[int]] = []

    def __repr__(self) -> str:  # names cases of tests, the same in each process
        return f"{type(self).__name__}({self.eager})"

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        self.asked.append(sorted(set(view["seat"].tolist())))
        assert view["to_move"].all()
        chosen = np.empty(view.size, dtype=np.int64)
        choose(mask, rng, np.full(view.size, self.eager), chosen)
        return chosen


class PlaysGin(Player):
    """Says that it plays the other game."""

    game = "gin"


def draws_and_throws(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
    """Draws from the stock and throws the highest card."""
    cards = mask[:, DISCARD : DISCARD + 53]
    return np.where(mask[:, DRAW] == 1, DRAW, DISCARD + 52 - cards[:, ::-1].argmax(axis=1))


# ------------------------------------------------------------------------------------------------------- one seat


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rules": FOUR},
        {"match": True, "rules": SHORT},
        {"illegal": "terminate", "rules": "rummy40:seats=4,wrong_opening=penalty"},
        {"opponents": [Player(), Player(), draws_and_throws], "rules": FOUR},
    ],
    ids=["two", "four", "match", "terminate", "opponents"],
)
def test_check_env(options: dict[str, Any]) -> None:
    for _ in range(2):  # it draws actions that are not seeded
        check_env(gymnasium.make(ENV, **options).unwrapped)


@pytest.mark.parametrize(("rules", "size", "num_actions"), [(TWO, 909, 1311), (FOUR, 1127, 1987)])
def test_make_gives_an_environment_that_a_random_loop_plays(rules: str, size: int, num_actions: int) -> None:
    env = gymnasium.make(ENV, rules=rules, opponents=Player())
    assert isinstance(env.unwrapped, Rummy40Env)
    assert env.observation_space.shape == (size,)
    assert env.action_space == gymnasium.spaces.Discrete(num_actions)
    assert isinstance(env.action_space, LegalActions)
    observation, info = env.reset(seed=1)
    for _ in range(3):
        over = False
        while not over:
            assert observation in env.observation_space
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            assert np.array_equal(env.unwrapped.action_masks(), info["action_mask"])
            over = terminated or truncated
            assert ("ending" in info) == over
        assert not info["action_mask"].any()
        own, others = info["penalties"][0], info["penalties"][1:]
        assert reward == pytest.approx(others.mean() - own)
        assert set(info) == {"action_mask", "ending", "out", "penalties", "turns"}
        observation, info = env.reset()


def test_without_a_mask_for_the_opening_it_costs_points() -> None:
    class OneAgent:
        """The single seat as `wrong_opening` plays an AEC environment."""

        def __init__(self, rules: str) -> None:
            self.env = Rummy40Env(rules=rules, opponents=draws_and_throws)

        def reset(self, seed: int, options: dict[str, Any]) -> None:
            observation, info = self.env.reset(seed=seed, options=options)
            self.now: Any = (observation, 0.0, False, False, info)

        def step(self, action: int) -> None:
            self.now = self.env.step(action)

        def agent_iter(self) -> Sequence[str]:
            return ["seat_0"] * 100

        def last(self) -> tuple[Any, ...]:
            observation, *rest, info = self.now
            return self.observe(""), *rest, info | {"reward": rest[0]}

        def observe(self, agent: str) -> dict[str, np.ndarray]:
            return {"action_mask": self.now[-1]["action_mask"]}

    masked = wrong_opening(OneAgent(LITTLE))
    wrong = wrong_opening(OneAgent(LITTLE + ",wrong_opening=penalty"))
    assert masked["penalties"][0] == 6
    assert (wrong["penalties"] - masked["penalties"]).tolist() == [20, 0]
    assert wrong["reward"] == masked["reward"] - 20


def test_illegal_actions() -> None:
    env = Rummy40Env(rules=FOUR, opponents=Player(), illegal="terminate", illegal_penalty=60.0)
    env.reset(seed=1)
    _, reward, terminated, truncated, info = env.step(TAKE_BACK)
    assert (reward, terminated, truncated) == (-60.0, True, False)
    assert (info["ending"], info["illegal_action"]) == ("illegal", TAKE_BACK)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(DRAW)
    env = Rummy40Env(rules=FOUR, opponents=Player())
    env.reset(seed=1)
    before = env.table.tables.tobytes()
    for action in (TAKE_BACK, -1, 1987):
        with pytest.raises(IllegalAction, match="table 0: seat 0"):
            env.step(action)
        assert env.table.tables.tobytes() == before
    env.step(TAKE)


# ------------------------------------------------------------------------------------------------------ opponents


def test_one_opponent_for_all_or_one_for_each_seat() -> None:
    one = Player()
    envs = Rummy40VectorEnv(64, rules=FOUR, opponents=one)
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    assert any(len(seats) > 1 for seats in one.asked)  # all at once
    assert set().union(*one.asked) == {1, 2, 3}

    each = [Player(), Player(False), Player()]
    envs = Rummy40VectorEnv(16, rules=FOUR, opponents=each)
    _, infos = envs.reset(seed=1)
    for _ in range(50):
        *_, infos = envs.step(envs.action_space.sample())
    for seat, player in enumerate(each, 1):
        assert player.asked
        assert all(seats == [seat] for seats in player.asked)

    # One object at two seats, another between them.
    twice, between = Player(), Player(False)
    envs = Rummy40VectorEnv(64, rules=FOUR, opponents=[twice, between, twice])
    envs.reset(seed=1)
    assert set().union(*twice.asked) == {1, 3}
    assert set().union(*between.asked) == {2}


def test_the_same_player_once_or_three_times_plays_the_same() -> None:
    stories = []
    for opponents in (Player(), [Player(), Player(), Player()]):
        envs = Rummy40VectorEnv(4, rules=FOUR, opponents=opponents)
        _, infos = envs.reset(seed=2)
        rngs, story = generators(4), []
        for _ in range(150):
            observations, rewards, *_, infos = envs.step(policy(rngs, infos["action_mask"]))
            story.append((observations, rewards))
        stories.append(tuple(story))
    assert data_equivalence(*stories, exact=True)


def test_an_opponent_that_plays_illegally_is_named() -> None:
    def cheats(view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return np.full(view.size, TAKE_BACK)

    with pytest.raises(
        RuntimeError, match="opponent FunctionOpponent.cheats. chose an illegal action: table 0: seat 2"
    ):
        Rummy40Env(rules="rummy40:seats=4,first_dealer=0", opponents=[Player(), cheats, Player()]).reset(seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": "cardpuzzle"}, "is no preset"),
        ({"rules": FOUR, "opponents": [Player()] * 2}, "2 opponents are given; expected one for all, or one for each"),
        ({"opponents": [Player()] * 3}, "3 opponents are given"),
        ({"opponents": "random"}, "'module:spec'"),
        ({"opponents": [7]}, "no method act"),
        ({"opponents": PlaysGin()}, "opponent .* plays gin; expected one that plays rummy40"),
        ({"render_mode": "human"}, "expected None, 'ansi' or 'rgb_array'"),
    ],
    ids=str,
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    for make in (Rummy40Env, lambda **options: Rummy40VectorEnv(2, **options)):
        with pytest.raises(ValueError, match=message):
            make(**options)


def test_a_module_is_told_which_game_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(spec: str, game: str = "gin") -> Player:
        asked.append((spec, game))
        return Player()

    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(agents, "make", make)
    Rummy40VectorEnv(1, rules=FOUR, opponents=["agents:one", "agents:two", "agents:three"])
    assert asked == [("one", "rummy40"), ("two", "rummy40"), ("three", "rummy40")]
    monkeypatch.setattr(agents, "make", lambda spec: asked.append((spec, "not told")) or Player())
    Rummy40VectorEnv(1, opponents="agents:one")
    assert asked[-1] == ("one", "not told")


# ------------------------------------------------------------------------------------------------------ the vector


def test_make_vec_gives_the_native_vector_environment() -> None:
    envs = gymnasium.make_vec(ENV, num_envs=8, rules=FOUR)
    assert type(envs) is Rummy40VectorEnv
    assert [opponent.name for opponent in envs.opponents] == ["greedy"] * 3
    observations, infos = envs.reset(seed=1)
    assert np.array_equal(infos["action_mask"].shape, (8, 1987))
    for _ in range(30):
        assert observations in envs.observation_space
        assert (envs.tables["mover"] == 0).all()
        assert np.array_equal(infos["action_mask"], engine.legal(envs.tables))
        assert np.array_equal(observations, view.look(envs.tables, 0)[0])
        observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        assert rewards.dtype == np.float64
    assert type(gymnasium.make_vec(ENV, num_envs=2, vectorization_mode="sync")) is SyncVectorEnv


@pytest.mark.parametrize("match", [False, True], ids=["hand", "match"])
@pytest.mark.parametrize("seats", [2, 4])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_equals_single_environments_side_by_side(mode: AutoresetMode, seats: int, match: bool) -> None:
    """Everything that Gymnasium's own vector environment returns over single ones, the infos included, seed by seed."""
    # Hands of three are short, and the opponents end some before the learner can move.
    rules = preset("rummy40", seats=seats, hand_size=3, jokers=2, opening=0, limit=15)
    opponents: Any = Player() if seats == 2 else [Player(), Player(False), draws_and_throws]
    kwargs: dict[str, Any] = {"opponents": opponents, "match": match, "rules": rules}
    ours = Rummy40VectorEnv(5, autoreset_mode=mode, **kwargs)
    theirs = SyncVectorEnv([lambda: Rummy40Env(**kwargs)] * 5, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    seeds: list[int | None] = [3, 0, 8, 8, 2**40]
    ours_now, theirs_now = ours.reset(seed=seeds), theirs.reset(seed=seeds)
    assert data_equivalence(ours_now, theirs_now, exact=True)
    infos, rngs, episodes = ours_now[1], generators(5), 0
    for _ in range(150):
        actions = policy(rngs, infos["action_mask"])
        ours_step, theirs_step = ours.step(actions), theirs.step(actions)
        assert data_equivalence(ours_step, theirs_step, exact=True)
        over, infos = ours_step[2] | ours_step[3], ours_step[4]
        episodes += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            observations, infos = ours.reset(options={"reset_mask": over})
            assert np.array_equal(observations, theirs.reset(options={"reset_mask": over})[0])
    assert episodes >= (5 if match else 15)


def test_results_do_not_depend_on_the_number_of_tables() -> None:
    stories = []
    for count in (2, 7):
        envs = Rummy40VectorEnv(count, rules=SHORT + ",seats=4", opponents=[Player(), Player(False), Player()])
        _, infos = envs.reset(seed=11)
        rngs, story = generators(count), []
        for _ in range(120):
            observations, rewards, *_, infos = envs.step(policy(rngs, infos["action_mask"]))
            story.append((observations[:2].copy(), rewards[:2].copy()))
        stories.append(tuple(story))
    assert data_equivalence(*stories, exact=True)


@pytest.mark.parametrize("seats", [2, 4])
def test_match_pays_every_hand_once_and_says_who_won(seats: int) -> None:
    rules = Rummy40Rules(seats=seats, hand_size=4, jokers=2, opening=0, limit=25)  # type: ignore[arg-type]
    envs = Rummy40VectorEnv(8, match=True, rules=rules, opponents=Player())
    envs.reset(seed=5)
    paid = np.zeros(8)
    matches = 0
    for _ in range(300):
        _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        assert not truncated.any()
        paid += rewards
        for row in np.flatnonzero(terminated):
            told = infos["final_info"]
            scores = told["scores"][row]
            assert paid[row] == pytest.approx(scores[1:].mean() - scores[0])
            assert scores.max() >= 25
            assert told["match_winners"][row].tolist() == (scores == scores.min()).astype(int).tolist()
            matches += 1
            paid[row] = 0
        if "_ending" in infos:
            assert not infos["match_winners"].any()
    assert matches > 8


def test_pickled_in_the_middle_of_a_game_it_goes_on_the_same() -> None:
    envs = Rummy40VectorEnv(3, rules=FOUR, opponents=[Player(), draws_and_throws, Player()], match=True)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    for _ in range(10):
        envs.step(envs.action_space.sample())
    again, copied = pickle.loads(pickle.dumps(envs)), copy.deepcopy(envs)
    for _ in range(30):
        ours = envs.step(envs.action_space.sample())
        assert data_equivalence(ours, again.step(again.action_space.sample()), exact=True)
        assert data_equivalence(ours, copied.step(copied.action_space.sample()), exact=True)
