"""The player that comes with the library."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import agents
from agents.bundle import PRETRAINED, BundleError
from agents.match import play_match
from gin_env import engine
from gin_env.view import observe
from tests.test_agents import keys

BEST = PRETRAINED / "best"


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in BEST.iterdir()) < 5_000_000


def test_its_graph_does_not_tell_where_it_was_made() -> None:
    assert b"networks.py" not in (BEST / "policy.onnx").read_bytes()


@pytest.mark.parametrize(("name", "least"), [("greedy", 2.5), ("gin-only", 2), ("early-knock", 0.5)])
def test_it_beats_the_styles(name: str, least: float) -> None:
    result = play_match(agents.make("best"), agents.make(name), deals=500, seed=11)
    assert result.ci95[0] > least
    assert result.forfeits == (0, 0)


@pytest.mark.parametrize("rules", ["eaai", "plus20", "luciano"])
def test_it_plays_other_rules(rules: str) -> None:
    result = play_match(agents.make("best"), agents.make("random"), deals=20, rules=rules, match=True)
    with pytest.raises(BundleError, match="any_rules=1 it plays all the same"):
        play_match(agents.make("best:any_rules=0"), agents.make("random"), deals=1, rules=rules)
    assert result.games_won >= 36


def test_a_sample_is_its_policy() -> None:
    sampled = agents.make("best:sample=1")
    table = engine.new_tables("cardpuzzle", 1, seed=5)
    views, masks = np.repeat(observe(table), 4000), np.repeat(engine.legal(table), 4000, axis=0)
    shares = np.bincount(sampled.act(views, masks, keys(4000)), minlength=108) / 4000
    policy = sampled.probabilities(views[:1], masks[:1])[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(shares, policy, atol=0.03)


def test_its_card_names_how_it_was_made() -> None:
    provenance = json.loads((BEST / "provenance.json").read_text())
    card = (Path(BEST) / "README.md").read_text()
    assert provenance["steps"] > 10_000_000
    assert {"seed", "opponents", "start_from"} <= set(provenance["config"])
    assert "ginrummy match" in card
