"""The Gymnasium doors: one seat, and the vector environment. E.. are the ids of known faults of other libraries."""

import copy
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import agents
from gin_env import IllegalAction, Rules, engine, preset, view
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE
from gin_env.cards import parse_card, parse_cards
from gin_env.seat import GinRummyEnv
from gin_env.spaces import LegalActions
from gin_env.tables import DRAW_ANY, DRAW_STOCK, ENDINGS, OFFER, OFFER_DEALER, THROW
from gin_env.vector import GinRummyVectorEnv

ENV = "gin_env/GinRummy-v0"
MODES = list(AutoresetMode)
CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "data" / "cases.json").read_text())}


def deck_of(non_dealer: str, dealer: str, upcard: str, stock: str) -> list[int]:
    """Returns a deck that deals these hands, with these cards on top of the stock."""
    hands = zip(parse_cards(non_dealer), parse_cards(dealer), strict=True)
    deck = [card for pair in hands for card in pair] + parse_cards(upcard) + parse_cards(stock)
    return deck + [card for card in range(52) if card not in deck]


# Case S01: a knock with 7 against 27, of which 8 are laid off, wins 12. The knocker is the non-dealer, draws the king
# of diamonds from the stock after two passes, and knocks with it.
S01_KNOCKER = "3C 4C 5C QS QH QD 9H TH JH 7D"
S01_DEFENDER = "2C 6C KS 9D AS AH AD 8S 8H 8D"
S01_DECK = deck_of(S01_KNOCKER, S01_DEFENDER, "4H", "KD")
KNOCK_KD = KNOCK + parse_card("KD")

# Case L04: the defender is left with nothing after layoffs. That undercuts a knock with 8: 33 points, not gin.
L04_KNOCKER = "7S 7H 7C 8H 9H TH 7D 8D 9D 8S"
L04_DEFENDER = "9S TS JS JH 6D TD JD 8C 9C TC"
L04_DECK = deck_of(L04_KNOCKER, L04_DEFENDER, "2H", "KD")


class Script:
    """An opponent that plays given actions, one for each decision at a single table, and then at random."""

    name = "script"

    def __init__(self, *actions: int) -> None:
        self.actions = list(actions)

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        if self.actions and view.size == 1:
            return np.array([self.actions.pop(0)])
        return agents.make("random").act(view, mask, rng)


class ThrowsDrawn:
    """Passes, draws from the stock and throws what it drew."""

    name = "throws drawn"

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return np.where(view["drawn"] >= 0, DISCARD + view["drawn"], np.where(mask[:, PASS] == 1, PASS, DRAW))


def policy(rngs: Sequence[np.random.Generator], masks: np.ndarray) -> np.ndarray:
    """Returns a random legal action for each table from the table's own generator, 0 where there is none."""
    return np.array([rng.choice(np.flatnonzero(m)) if m.any() else 0 for rng, m in zip(rngs, masks, strict=True)])


def generators(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng(number) for number in range(count)]


def deal_of(env: GinRummyEnv | GinRummyVectorEnv) -> bytes:
    """Returns what decides the episode: the deck and who deals it."""
    tables = env.table.tables if isinstance(env, GinRummyEnv) else env.tables
    return tables["deck"].tobytes() + tables["dealer"].tobytes()


def snapshot(env: GinRummyVectorEnv) -> list[Any]:
    """Returns a copy of everything that a step may change."""
    kept = ("_opponent_keys", "_decisions", "_over", "_pending")
    return [env.tables.tobytes(), *(getattr(env, name).tobytes() for name in kept), env.action_space.legal.tobytes()]


# ------------------------------------------------------------------------------------------------------- one seat


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"match": True},
        {"illegal": "terminate"},
        {"rules": "plus20", "opponent": "agents:random"},
        {"rules": "openspiel"},
    ],
    ids=str,
)
def test_check_env(options: dict[str, Any]) -> None:
    for _ in range(3):  # it draws actions that are not seeded
        check_env(gymnasium.make(ENV, **options).unwrapped)


def test_make_gives_an_environment_that_a_random_loop_plays() -> None:
    env = gymnasium.make(ENV)
    assert isinstance(env.unwrapped, GinRummyEnv)
    env.reset(seed=1)
    hands = 0
    while hands < 20:
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        assert np.array_equal(env.unwrapped.action_masks(), info["action_mask"])
        if terminated or truncated:
            hands += 1
            assert not info["action_mask"].any()
            env.reset()


def test_action_space_samples_what_is_legal() -> None:
    env = GinRummyEnv()
    _, info = env.reset(seed=2)
    space = env.action_space
    assert space == gymnasium.spaces.Discrete(NUM_ACTIONS)
    while not info["action_mask"][DISCARD:].any():
        _, _, _, _, info = env.step(TAKE)
    legal = set(np.flatnonzero(info["action_mask"]).tolist())
    assert {int(space.sample()) for _ in range(500)} == legal
    # Masks and probabilities of one's own come first, and an illegal action is contained as well.
    assert {int(space.sample(np.ones(NUM_ACTIONS, dtype=np.int8))) for _ in range(500)} - legal
    assert space.sample(probability=np.eye(NUM_ACTIONS)[7]) == 7
    assert space.contains(PASS)

    for other in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert isinstance(other, LegalActions)
        assert np.array_equal(other.legal, space.legal)
        same = copy.deepcopy(space)
        assert [other.sample() for _ in range(9)] == [same.sample() for _ in range(9)]


def test_seeded_samples_repeat_from_the_start_of_an_episode() -> None:
    drawn = []
    for _ in range(2):
        env = GinRummyEnv()
        env.reset(seed=3)
        env.action_space.seed(7)
        drawn.append([env.action_space.sample() for _ in range(20)])
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {PASS, TAKE} or set(drawn[0]) == {DRAW, TAKE}
    # Seeded in the middle of an episode: an action that any episode may open with, as `check_env` needs.
    env.step(TAKE)
    env.action_space.seed(7)
    assert env.action_space.sample() == TAKE


def test_action_that_is_no_integer() -> None:
    env = GinRummyEnv()
    env.reset(seed=1)
    for action in (None, 1.0, "draw"):
        with pytest.raises(TypeError, match="expected an integer"):
            env.step(action)
    env.step(np.int32(TAKE))


def test_render() -> None:
    env = gymnasium.make(ENV, render_mode="ansi", opponent=Script(PASS), rules=preset("cardpuzzle", target=50))
    env.reset(seed=1, options={"deck": S01_DECK, "dealer": 1})
    env.step(PASS)
    env.step(DRAW)
    text = env.render()
    for part in ("non-dealer", "10 hidden", "30 cards", "4♥ <- top", "[Q♠ Q♥ Q♦]  [9♥ 10♥ J♥]  [3♣ 4♣ 5♣]  ♦ 7 K"):
        assert part in text
    assert "7 after the best discard" in text
    assert "score" not in text
    env.step(KNOCK_KD)
    text = env.render()
    for part in ("you knocked and won 12", "[8♠ 8♥ 8♦]", "♠ K   ♦ 9", "laid off 2♣ 6♣", "deadwood 19"):
        assert part in text
    assert "score      you 0, opponent 0, to 100" in _first_text(match=True)


def _first_text(**options: Any) -> str:
    env = GinRummyEnv(render_mode="ansi", **options)
    env.reset(seed=1)
    text = env.render()
    assert isinstance(text, str)
    return text


def test_render_without_a_mode_says_so() -> None:
    env = GinRummyEnv()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert env.render() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": "canasta"}, "is no preset"),
        ({"rules": 7}, "expected a Rules object"),
        ({"opponent": "greedy"}, "'module:spec'"),
        ({"opponent": "no_such_module:greedy"}, "no function make"),
        ({"opponent": "json:greedy"}, "no function make"),
        ({"opponent": "agents:nobody"}, "is no agent"),
        ({"opponent": 7}, "no method act"),
        ({"illegal": "ignore"}, "'raise' or 'terminate'"),
        ({"illegal": "terminate", "illegal_penalty": -1.0}, "0 or more"),
        ({"render_mode": "human"}, "expected None, 'ansi' or 'rgb_array'"),
    ],
    ids=str,
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GinRummyEnv(**options)
    vector_options = {name: value for name, value in options.items() if not name.startswith("illegal")}
    if vector_options:
        with pytest.raises(ValueError, match=message):
            GinRummyVectorEnv(2, **vector_options)


# ------------------------------------------------------------------------------------------------------ the vector


def test_make_vec_gives_the_native_vector_environment() -> None:
    envs = gymnasium.make_vec(ENV, num_envs=8)
    assert type(envs) is GinRummyVectorEnv
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert GinRummyVectorEnv.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_observation_space.shape == (view.OBSERVATION_SIZE,)
    assert envs.action_space == gymnasium.spaces.MultiDiscrete([NUM_ACTIONS] * 8)
    observations, infos = envs.reset(seed=1)
    for _ in range(50):
        assert observations in envs.observation_space
        assert infos["action_mask"].shape == (8, NUM_ACTIONS)
        assert infos["action_mask"].dtype == np.int8
        observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        assert rewards.dtype == np.float64
        assert terminated.dtype == truncated.dtype == np.bool_
    envs.close()
    assert type(gymnasium.make_vec(ENV, num_envs=2, vectorization_mode="sync")) is SyncVectorEnv


@pytest.mark.parametrize("match", [False, True], ids=["hand", "match"])
@pytest.mark.parametrize("opponent", ["agents:greedy", "agents:random"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_equals_single_environments_side_by_side(mode: AutoresetMode, opponent: str, match: bool) -> None:
    """Everything that Gymnasium's own vector environment returns over single ones, the infos included."""
    count = 5
    # Easy knocks make short hands, and some that the opponent ends before the learner can move.
    rules = preset("cardpuzzle", target=100, knock_limit=50)
    kwargs: dict[str, Any] = {"opponent": opponent, "match": match, "rules": rules}
    ours = GinRummyVectorEnv(count, autoreset_mode=mode, **kwargs)
    theirs = SyncVectorEnv([lambda: GinRummyEnv(**kwargs)] * count, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    seeds: list[int | None] = [3, 0, 8, 8, 2**40]
    ours_now, theirs_now = ours.reset(seed=seeds), theirs.reset(seed=seeds)
    assert data_equivalence(ours_now, theirs_now, exact=True)
    infos, rngs, episodes = ours_now[1], generators(count), 0
    for _ in range(150):
        actions = policy(rngs, infos["action_mask"])
        ours_step, theirs_step = ours.step(actions), theirs.step(actions)
        assert data_equivalence(ours_step, theirs_step, exact=True)
        over, infos = ours_step[2] | ours_step[3], ours_step[4]
        episodes += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            observations, infos = ours.reset(options={"reset_mask": over})
            their_observations, their_infos = theirs.reset(options={"reset_mask": over})
            assert np.array_equal(observations, their_observations)
            assert np.array_equal(infos["action_mask"][over], their_infos["action_mask"][over])
    assert episodes >= (5 if match else 25)


@pytest.mark.parametrize("opponent", ["agents:greedy", "agents:random"])
def test_results_do_not_depend_on_the_number_of_tables(opponent: str) -> None:
    stories = []
    for count in (2, 7):
        envs = GinRummyVectorEnv(count, opponent=opponent)
        _, infos = envs.reset(seed=11)
        rngs = generators(count)
        story = []
        for _ in range(120):
            observations, rewards, *_, infos = envs.step(policy(rngs, infos["action_mask"]))
            story.append((observations[:2].copy(), rewards[:2].copy()))
        stories.append(story)
    assert data_equivalence(tuple(stories[0]), tuple(stories[1]), exact=True)


def test_same_step_autoreset() -> None:
    envs = GinRummyVectorEnv(16, autoreset_mode="SameStep")
    _, infos = envs.reset(seed=4)
    seen = 0
    for _ in range(60):
        observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        over = terminated | truncated
        assert infos["action_mask"].any(axis=1).all()
        assert ("final_obs" in infos) == over.any()
        if over.any():
            final = infos["final_info"]
            assert np.array_equal(infos["_final_obs"], over)
            assert np.array_equal(infos["_final_info"], over)
            assert np.array_equal(final["_ending"], over)
            assert (rewards[over] == (final["winner"] * final["points"])[over]).all()
            assert not final["action_mask"][over].any()
            assert "ending" not in infos
        for row in np.flatnonzero(over):
            seen += 1
            # The last observation shows the opponent's ten cards, the new one shows none that it was not seen to take.
            assert infos["final_obs"][row][view.SCALAR["opponent_known_count"]] >= 0.99
            assert observations[row][view.SCALAR["opponent_known_count"]] < 0.2
            assert infos["final_obs"][row] in envs.single_observation_space
        for row in np.flatnonzero(~over) if over.any() else ():
            assert infos["final_obs"][row] is None
    assert seen > 30


def test_next_step_autoreset() -> None:
    envs = GinRummyVectorEnv(16, autoreset_mode=AutoresetMode.NEXT_STEP)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    _, infos = envs.reset(seed=4)
    before = np.zeros(16, dtype=bool)
    for _ in range(60):
        actions = envs.action_space.sample()
        actions[before] = 107  # ignored
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        over = terminated | truncated
        assert not over[before].any()
        assert not rewards[before].any()
        assert np.array_equal(infos["action_mask"].any(axis=1), ~over)
        assert np.array_equal(infos.get("_ending", np.zeros(16, dtype=bool)), over)
        assert (observations[over, view.SCALAR["opponent_known_count"]] >= 0.99).all()
        assert "final_obs" not in infos
        before = over


def test_disabled_autoreset() -> None:
    envs = GinRummyVectorEnv(4, autoreset_mode=AutoresetMode.DISABLED)
    _, infos = envs.reset(seed=4)
    over = np.zeros(4, dtype=bool)
    while not over.any():
        observations, _, terminated, truncated, infos = envs.step(envs.action_space.sample())
        over = terminated | truncated
    assert np.array_equal(infos["action_mask"].any(axis=1), ~over)
    with pytest.raises(gymnasium.error.ResetNeeded, match="are over"):
        envs.step(envs.action_space.sample())
    after, infos = envs.reset(options={"reset_mask": over})
    assert np.array_equal(after[~over], observations[~over])
    assert infos["action_mask"].any(axis=1).all()
    envs.step(envs.action_space.sample())

    for mask in (np.ones(3, dtype=bool), np.ones(4), [True] * 4, np.zeros(4, dtype=bool)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})


def test_step_before_reset() -> None:
    envs = GinRummyVectorEnv(2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step([0, 0])
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.reset(options={"reset_mask": np.array([True, False])})


def test_returned_arrays_are_not_overwritten() -> None:
    envs = GinRummyVectorEnv(3)
    kept = [envs.reset(seed=1)]
    copies = [copy.deepcopy(kept[0])]
    for _ in range(40):
        kept.append(envs.step(envs.action_space.sample()))
        copies.append(copy.deepcopy(kept[-1]))
    assert data_equivalence(tuple(kept), tuple(copies), exact=True)

    envs = GinRummyVectorEnv(3, copy=False)
    first, _ = envs.reset(seed=1)
    second, *_ = envs.step(envs.action_space.sample())
    assert second is first


def test_pickled_in_the_middle_of_a_game_it_goes_on_the_same() -> None:
    envs = GinRummyVectorEnv(3, opponent="agents:random", match=True)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    for _ in range(10):
        envs.step(envs.action_space.sample())
    again = pickle.loads(pickle.dumps(envs))
    assert again.rules == envs.rules
    assert again.match
    for _ in range(50):
        assert data_equivalence(
            envs.step(envs.action_space.sample()), again.step(again.action_space.sample()), exact=True
        )


def test_bad_batches_are_refused() -> None:
    envs = GinRummyVectorEnv(2)
    envs.reset(seed=1)
    before = snapshot(envs)
    for actions in ([0], [0, 0, 0], [0.0, 1.0], 0):
        with pytest.raises(ValueError, match=r"expected integers of shape \(2,\)"):
            envs.step(actions)
    for seed in (-1, 1 << 64, "1", [1, 2, 3], [1, -1]):
        with pytest.raises(ValueError, match="seed"):
            envs.reset(seed=seed)
    assert snapshot(envs) == before
    with pytest.raises(ValueError, match="at least 1"):
        GinRummyVectorEnv(0)


@pytest.mark.parametrize("actions", [(DISCARD,), (-1,), (TAKE, PASS)], ids=["illegal", "negative", "too early"])
def test_an_opponent_that_plays_illegally_is_named(actions: tuple[int, ...]) -> None:
    env = GinRummyEnv(opponent=Script(*actions), illegal="terminate")
    with pytest.raises(RuntimeError, match="opponent .* illegal"):
        env.reset(seed=1, options={"deck": S01_DECK, "dealer": 0})


# ---------------------------------------------------------------------------------------------- rewards and endings


def test_rewards_e06_the_learner_knocks() -> None:
    env = GinRummyEnv(opponent=Script(PASS))
    env.reset(seed=1, options={"deck": S01_DECK, "dealer": 1})
    assert env.step(PASS)[1:4] == (0.0, False, False)
    assert env.step(DRAW)[1:4] == (0.0, False, False)
    _, reward, terminated, truncated, info = env.step(KNOCK_KD)
    assert (reward, terminated, truncated) == (12.0, True, False)
    mask = info.pop("action_mask")
    assert not mask.any()
    assert info == {
        "ending": "knock",
        "winner": 1,
        "points": 12,
        "own_deadwood": 7,
        "opponent_deadwood": 19,
        "turns": 1,
    }
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(PASS)


def test_rewards_e06_the_opponent_knocks() -> None:
    env = GinRummyEnv(opponent=Script(PASS, DRAW, KNOCK_KD))
    env.reset(seed=1, options={"deck": S01_DECK, "dealer": 0})
    # The learner's pass is its previous step: it is paid there, and the episode is over there.
    _, reward, terminated, truncated, info = env.step(PASS)
    assert (reward, terminated, truncated) == (-12.0, True, False)
    assert (info["ending"], info["winner"], info["points"]) == ("knock", -1, 12)
    assert (info["own_deadwood"], info["opponent_deadwood"]) == (19, 7)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_rewards_e06_in_the_vector(mode: AutoresetMode) -> None:
    class Knocks:
        """Passes, draws, and knocks with the king of diamonds where it can, each table for itself."""

        def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            first = mask.argmax(axis=1)
            return np.where(mask[:, KNOCK_KD] == 1, KNOCK_KD, first)

    envs = GinRummyVectorEnv(2, opponent=Knocks(), autoreset_mode=mode)
    envs.reset(seed=1, options={"decks": [S01_DECK, S01_DECK], "dealers": [1, 0]})
    _, rewards, terminated, _, _ = envs.step([PASS, PASS])
    assert rewards.tolist() == [0, -12]
    assert terminated.tolist() == [False, True]
    if mode is AutoresetMode.DISABLED:
        _, infos = envs.reset(options={"reset_mask": terminated})
    else:
        infos = envs.step([DRAW, PASS])[-1]
        assert infos["action_mask"][0, KNOCK_KD]


@pytest.mark.parametrize("learner_knocks", [True, False], ids=["learner", "opponent"])
def test_payoff_e17_an_undercut_with_layoffs(learner_knocks: bool) -> None:
    env = GinRummyEnv(opponent=Script(PASS) if learner_knocks else Script(PASS, DRAW, KNOCK_KD))
    env.reset(seed=1, options={"deck": L04_DECK, "dealer": 1 if learner_knocks else 0})
    for action in (PASS, DRAW, KNOCK_KD) if learner_knocks else (PASS,):
        _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated) == (-33.0 if learner_knocks else 33.0, True)
    assert (info["ending"], info["points"]) == ("undercut", 33)
    assert info["winner"] == (-1 if learner_knocks else 1)


def test_dead_hand_e17_terminates_without_points() -> None:
    env = GinRummyEnv(opponent=ThrowsDrawn())
    deck = parse_cards(CASES["F06"]["input"]["deck"])
    _, info = env.reset(seed=1, options={"deck": deck, "dealer": 1})
    player, over = ThrowsDrawn(), False
    while not over:
        row = view.observe(env.table.tables, 0)
        action = player.act(row, info["action_mask"][np.newaxis], np.zeros(1, dtype=np.uint64))[0]
        _, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert (info["ending"], info["winner"], info["points"], info["turns"]) == ("dead", 0, 0, 29)


@pytest.mark.parametrize("dealer", [0, 1])
def test_cap_on_draws_truncates(dealer: int) -> None:
    env = GinRummyEnv(rules=preset("cardpuzzle", draw_cap=4), opponent=ThrowsDrawn())
    _, info = env.reset(seed=1, options={"deck": S01_DECK, "dealer": dealer})
    over = False
    while not over:
        row = view.observe(env.table.tables, 0)
        action = ThrowsDrawn().act(row, info["action_mask"][np.newaxis], np.zeros(1, dtype=np.uint64))[0]
        _, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["ending"], info["winner"]) == ("truncated", 0)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_match_pays_every_hand_once_and_says_who_won(mode: AutoresetMode) -> None:
    envs = GinRummyVectorEnv(8, match=True, rules=preset("cardpuzzle", target=60), autoreset_mode=mode)
    _, infos = envs.reset(seed=5)
    paid = np.zeros(8)
    matches = wins = 0
    for _ in range(400):
        _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        assert not truncated.any()
        paid += rewards
        told = infos["final_info"] if mode is AutoresetMode.SAME_STEP and terminated.any() else infos
        for row in np.flatnonzero(terminated):
            own, opponent = told["own_score"][row], told["opponent_score"][row]
            assert paid[row] == own - opponent
            assert max(own, opponent) >= 60
            assert told["match_winner"][row] == (1 if own > opponent else -1)
            wins += own > opponent
            matches += 1
            paid[row] = 0
        if "_ending" in infos and mode is AutoresetMode.SAME_STEP:
            assert not infos["match_winner"].any()
        if mode is AutoresetMode.DISABLED and terminated.any():
            envs.reset(options={"reset_mask": terminated})
    assert matches > 20


@pytest.mark.parametrize("seed", [None, 3])
def test_reset_in_the_middle_of_a_match_starts_another(seed: int | None) -> None:
    envs = GinRummyVectorEnv(4, match=True)
    envs.reset(seed=5)
    while not envs.tables["scores"].any(axis=1).all():
        envs.step(envs.action_space.sample())
    keep = envs.tables["scores"][1:].copy()
    envs.reset(seed=seed, options={"reset_mask": np.array([True, False, False, False])})
    assert not envs.tables["scores"][0].any()
    assert np.array_equal(envs.tables["scores"][1:], keep)
    assert (envs.tables["match_winner"] == -1).all()


def test_hand_that_the_opponent_ends_before_the_learner_could_move() -> None:
    # Case F01: the non-dealer takes the upcard, throws KH and knocks with 2 against 60.
    deck = parse_cards(CASES["F01"]["input"]["deck"])
    actions = (TAKE, KNOCK + parse_card("KH"))
    given = {"deck": deck, "dealer": 0}

    env = GinRummyEnv(opponent=Script(*actions))
    _, info = env.reset(seed=1, options=given)
    assert env.table.tables["deck"][0].tolist() != deck  # another hand is dealt
    assert info["action_mask"].any()
    assert "ending" not in info
    _, reward, terminated, *_ = env.step(TAKE)
    assert (reward, terminated) == (0, False)

    env = GinRummyEnv(opponent=Script(*actions), match=True)
    _, info = env.reset(seed=1, options=given)
    assert (info["ending"], info["points"], info["opponent_score"], info["match_winner"]) == ("knock", 58, 58, 0)
    _, reward, *_ = env.step(TAKE)
    assert reward == -58


def test_opponent_that_leaves_the_learner_no_move_at_all() -> None:
    class AlwaysKnocks:
        def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return NUM_ACTIONS - 1 - mask[:, ::-1].argmax(axis=1)

    env = GinRummyEnv(rules=Rules(knock_limit=100, first_dealer=0), opponent=AlwaysKnocks())
    with pytest.raises(RuntimeError, match="before the learner could move"):
        env.reset(seed=1)


# ------------------------------------------------------------------------------------------- resets, seeds, illegal


@pytest.mark.parametrize("make", [GinRummyEnv, lambda **kw: GinRummyVectorEnv(3, **kw)], ids=["seat", "vector"])
def test_reset_e09_keeps_the_rules_and_the_options(make: Any) -> None:
    rules = Rules(gin_bonus=40, undercut_bonus=10, knock_limit=7)
    env = make(rules=rules)
    vector = env.table if isinstance(env, GinRummyEnv) else env
    for seed in (None, 1, 0):
        options = {"unknown": [1]}
        _, info = env.reset(seed=seed, options=options)
        assert options == {"unknown": [1]}
        assert env.rules == rules
        assert (vector.tables["rules"] == rules.record()).all()
        assert (vector.tables["limit"] == 7).all()
    if vector is env:
        options = {"reset_mask": np.array([True, False, True])}
        env.reset(options=options)
        assert list(options) == ["reset_mask"]


@pytest.mark.parametrize("make", [GinRummyEnv, lambda: GinRummyVectorEnv(2)], ids=["seat", "vector"])
def test_seeds_e10_seed_0_and_what_follows(make: Any) -> None:
    one, two = make(), make()
    deals = []
    for seed in (0, None, None, None, None, None):
        ours, theirs = one.reset(seed=seed), two.reset(seed=seed)
        assert data_equivalence(ours, theirs, exact=True)
        assert deal_of(one) == deal_of(two)
        deals.append(deal_of(one))
    assert len(set(deals)) == 6
    one.reset(seed=0)
    assert deal_of(one) == deals[0]
    one.reset(seed=1)
    assert deal_of(one) not in deals
    # No seed is none: two environments that were never seeded differ.
    one, two = make(), make()
    one.reset()
    two.reset()
    assert deal_of(one) != deal_of(two)


def test_tables_of_one_seed_differ_and_are_those_of_the_engine() -> None:
    envs = GinRummyVectorEnv(64)
    envs.reset(seed=9)
    fresh = envs.tables["hand_number"] == 0  # but for those where the opponent ended the first hand
    assert fresh.sum() > 60
    assert np.array_equal(envs.tables["deck"][fresh], engine.new_tables("cardpuzzle", 64, seed=9)["deck"][fresh])
    assert len({deck.tobytes() for deck in envs.tables["deck"]}) == 64
    dealers = envs.tables["dealer"]
    assert 16 < dealers.sum() < 48


def test_random_opponents_of_two_seeds_differ() -> None:
    deck = {"deck": S01_DECK, "dealer": 0}
    views = set()
    for seed in range(20):
        env = GinRummyEnv(opponent="agents:random")
        observation, _ = env.reset(seed=seed, options=deck)
        views.add(observation.tobytes())
    assert len(views) > 5


def test_partial_seeds_restart_only_their_tables() -> None:
    envs = GinRummyVectorEnv(2)
    envs.reset(seed=[5, 6])
    first = envs.tables["deck"].copy()
    envs.reset(seed=[5, None])
    assert np.array_equal(envs.tables["deck"][0], first[0])
    assert not np.array_equal(envs.tables["deck"][1], first[1])


def test_illegal_e14_raises_and_changes_nothing() -> None:
    env = GinRummyEnv(opponent=Script(PASS))
    env.reset(seed=1, options={"deck": S01_DECK, "dealer": 1})
    env.step(PASS)  # and the opponent passes: only the stock may be drawn
    before = snapshot(env.table)
    for action in (TAKE, PASS, DISCARD, -1, NUM_ACTIONS, 10**6):
        with pytest.raises(IllegalAction, match="legal: draw") as caught:
            env.step(action)
        assert (caught.value.seat, caught.value.action, caught.value.legal) == (0, action, (DRAW,))
        assert snapshot(env.table) == before
    env.step(DRAW)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_illegal_e14_in_one_table_leaves_all_unchanged(mode: AutoresetMode) -> None:
    envs = GinRummyVectorEnv(6, match=True, autoreset_mode=mode)
    envs.reset(seed=2)
    for _ in range(5):
        *_, terminated, _, _ = envs.step(envs.action_space.sample())
        assert not terminated.any()
    before = snapshot(envs)
    for wrong in (NUM_ACTIONS - 1, -1, 5000):
        actions = envs.action_space.sample()
        actions[4] = wrong
        with pytest.raises(IllegalAction, match="table 4: seat 0"):
            envs.step(actions)
        assert snapshot(envs) == before
    envs.step(envs.action_space.sample())


@pytest.mark.parametrize("action", [TAKE, -1, NUM_ACTIONS])
def test_illegal_e14_terminates(action: int) -> None:
    env = gymnasium.make(ENV, opponent=Script(PASS), illegal="terminate", illegal_penalty=60.0)
    env.reset(seed=1, options={"deck": S01_DECK, "dealer": 1})
    env.step(PASS)
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-60.0, True, False)
    assert (info["ending"], info["illegal_action"]) == ("illegal", action)
    assert not info["action_mask"].any()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(DRAW)
    # The next episode starts clean, with the non-dealer.
    for _ in range(10):
        _, info = env.reset()
        row = env.unwrapped.table.tables[0]
        assert row["phase"] in ((OFFER,) if row["dealer"] == 1 else (OFFER_DEALER, DRAW_ANY))
        assert info["action_mask"].sum() == 2


def test_masks_e16() -> None:
    phases = set()
    for name in ("cardpuzzle", "luciano", "plus20", "rummyplus"):
        envs = GinRummyVectorEnv(64, rules=name, opponent="agents:random")
        _, infos = envs.reset(seed=3)
        for _ in range(60):
            masks = infos["action_mask"]
            assert masks.dtype == np.int8
            assert masks.any(axis=1).all()
            assert np.array_equal(masks, engine.legal(envs.tables))
            assert (envs.tables["mover"] == 0).all()
            phases.update(envs.tables["phase"].tolist())
            *_, infos = envs.step(envs.action_space.sample())
    assert phases == {OFFER, OFFER_DEALER, DRAW_STOCK, DRAW_ANY, THROW}


# --------------------------------------------------------------------------------------------------- manual rules


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("rules", ["openspiel", "eaai", "luciano:knocker_melds=manual,layoffs=manual,target=none"])
def test_manual_rules(rules: str, match: bool) -> None:
    """The learner lays melds and lays off by actions of its own; everything told of a hand is of one that ended."""
    envs = gymnasium.make_vec(ENV, num_envs=64, rules=rules, match=match, opponent="agents:greedy")
    assert envs.single_action_space.n == envs.unwrapped.rules.num_actions == 449
    observations, infos = envs.reset(seed=3)
    laid = 0
    learner = agents.make("greedy")
    endings = set()
    for _ in range(250):
        assert envs.observation_space.contains(observations)
        mask = infos["action_mask"]
        assert mask.any(axis=1).all()
        actions = learner.act(view.observe(envs.unwrapped.tables, 0), mask, np.zeros(64, dtype=np.uint64))
        laid += (actions >= BIG_GIN + 1).sum()
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        told = infos.get("final_info", infos)
        if "ending" in told:
            endings |= set(told["ending"][told["_ending"]])
        assert not truncated.any()
        assert (rewards[~(terminated | infos.get("_ending", terminated))] == 0).all()
    assert laid > 100
    assert {"knock", "undercut"} <= endings <= set(ENDINGS[1:])
