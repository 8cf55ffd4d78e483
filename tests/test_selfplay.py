"""Both seats of many tables."""

import numpy as np
import pytest

from gin_env import IllegalAction, engine
from gin_env.selfplay import SelfPlay, Turn
from gin_env.tables import ENDINGS
from gin_env.view import encode, observe


def any_legal(turn: Turn) -> np.ndarray:
    """Returns the last legal action of each row."""
    return turn.masks.shape[1] - 1 - turn.masks[:, ::-1].argmax(axis=1)


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("rules", ["cardpuzzle", "openspiel", "rummyplus:target=none"])
def test_it_is_the_engine(rules: str, match: bool) -> None:
    game = SelfPlay(40, rules=rules, match=match, seed=5)
    tables = engine.new_tables(rules, 40, seed=5, match=match)
    rng = np.random.default_rng(1)
    turn = game.reset()
    episodes = 0
    for _ in range(300):
        np.testing.assert_array_equal(turn.observations, encode(observe(tables)))
        np.testing.assert_array_equal(turn.masks, engine.legal(tables))
        np.testing.assert_array_equal(turn.movers, tables["mover"])
        actions = np.where(turn.masks == 1, rng.random(turn.masks.shape), -1).argmax(axis=1)
        points, over = engine.step(tables, actions, redeal=True)
        turn = game.step(actions)
        np.testing.assert_array_equal(turn.rewards, points)
        np.testing.assert_array_equal(turn.ended, over == engine.EPISODE_ENDED)
        assert not turn.truncated.any()
        episodes += turn.ended.sum()
        assert game.tables.tobytes() == tables.tobytes()
    assert episodes > 10 or match


def test_nothing_is_copied() -> None:
    game = SelfPlay(3)
    first = game.reset()
    second = game.step(any_legal(first))
    assert all(one is other for one, other in zip(first, second, strict=True))
    tables = game.tables
    assert game.reset(seed=9).observations is first.observations
    assert game.tables is tables


def test_seeds() -> None:
    many, one = SelfPlay(8, seed=4), SelfPlay(1, seed=4)
    assert np.array_equal(many.reset().observations[0], one.reset().observations[0])
    start = many.reset().observations.copy()
    many.step(any_legal(many.reset()))
    assert np.array_equal(many.reset().observations, start)
    assert not np.array_equal(many.reset(seed=5).observations, start)
    assert np.array_equal(many.reset().observations, many.reset(seed=5).observations)
    with pytest.raises(ValueError, match="seed is -1"):
        many.reset(seed=-1)
    assert many.seed == 5


def test_truncated() -> None:
    game = SelfPlay(30, rules="cardpuzzle:draw_cap=2")
    turn = game.reset()
    seen = 0
    for _ in range(20):
        # Never knocks.
        turn = game.step(np.where(turn.masks[:, :55].any(axis=1), turn.masks[:, :55].argmax(axis=1), 0))
        assert (turn.truncated <= turn.ended).all()
        assert (game.tables["ending"][turn.truncated] == ENDINGS.index("truncated")).all()
        seen += turn.truncated.sum()
    assert seen > 30


@pytest.mark.parametrize("action", [1, 5, 107, 108, -1, -7])
def test_illegal_actions_change_nothing(action: int) -> None:
    game = SelfPlay(4)
    turn = game.reset()
    before = game.tables.tobytes(), turn.observations.copy()
    actions = any_legal(turn)
    actions[2] = action
    with pytest.raises(IllegalAction, match="table 2: seat"):
        game.step(actions)
    assert game.tables.tobytes() == before[0]
    assert np.array_equal(turn.observations, before[1])


@pytest.mark.parametrize("actions", [[0, 0], [[0, 0, 0]], [0.0, 0.0, 0.0], None])
def test_actions_must_fit(actions: object) -> None:
    with pytest.raises(ValueError, match="actions are"):
        SelfPlay(3).step(actions)  # type: ignore[arg-type]
