"""The fit of what a search believes: known weights are found again, and what it tells is told by every door."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from agents.worlds import TERMS, WEIGHTS, sample_hands
from experiments import belief, cli
from experiments.belief import belief_table, fit_belief
from gin_env.cards import from_mask, to_mask
from gin_env.view import observe
from tests.test_agents import played


def test_known_weights_are_found_again() -> None:
    rng = np.random.default_rng(3)
    # Drawn by the present weights, of more hands than the fit will see; true by others.
    truth = WEIGHTS + np.where(np.arange(WEIGHTS.size) % 2, 0.3, -0.2)
    told = np.empty((1500, 101, WEIGHTS.size))
    for one in told:
        drawn = rng.normal(size=(600, WEIGHTS.size))
        chances = np.exp(drawn @ (truth - WEIGHTS))
        one[0] = drawn[rng.choice(600, p=chances / chances.sum())]
        one[1:] = drawn[:100]
    fitted, error = belief._likeliest(told)
    assert (0.02 < error).all()
    assert (error < 0.04).all()
    assert (abs(fitted - truth) < 4 * error).all()
    assert (abs(fitted - WEIGHTS) > 4 * error).all()
    gain, counts = belief._log_likelihood(told, fitted)
    assert counts.sum(axis=1) == pytest.approx(1)
    assert gain.mean() > belief._log_likelihood(told, truth)[0].mean() > 0
    assert belief._log_likelihood(told, WEIGHTS)[0] == pytest.approx(0)


def test_few_decisions_give_finite_weights() -> None:
    told = np.random.default_rng(1).normal(size=(300, 11, WEIGHTS.size))
    told[:, 0, 0] = 5 + abs(told[:, 0, 0])  # explains everything
    fitted, error = belief._likeliest(told)
    assert 1 < fitted[0] < 50
    assert np.isfinite(error).all()
    assert (belief._log_likelihood(told, fitted)[0] < np.log(11)).all()
    held = belief.PRIOR * told.var(axis=1).sum(axis=0)
    best = belief._log_likelihood(told, fitted)[0].sum() - held @ fitted**2 / 2
    for place in range(WEIGHTS.size):
        for step in (-0.01, 0.01):
            other = fitted + step * (np.arange(WEIGHTS.size) == place)
            assert belief._log_likelihood(told, other)[0].sum() - held @ other**2 / 2 < best


def test_guess_restated() -> None:
    views = observe(played("cardpuzzle", 5, 15, seed=2))
    for row in range(views.size):
        v = views[row]
        hands = sample_hands(views, 40, seed=row, row=row)
        true = int(hands[-1])
        seen = int(v["hand"]) | int(v["opponent_known"]) | to_mask(v["pile"][: v["pile_size"]])
        unseen = from_mask(int(v["rules"]["pack"]) & ~seen)
        hidden = sum(true >> card & 1 for card in unseen)
        nats, prior = 0.0, 0.0
        for card in unseen:
            share = (sum(int(hand) >> card & 1 for hand in hands) + 1) / 42
            nats -= np.log(share if true >> card & 1 else 1 - share) / len(unseen)
            prior -= np.log(hidden / len(unseen) if true >> card & 1 else 1 - hidden / len(unseen)) / len(unseen)
        assert belief._guess(v, np.uint64(true), hands) == pytest.approx((nats, prior))


def test_fit() -> None:
    result = fit_belief(["strategist", "greedy"], positions=300, samples=40, seed=5)
    assert set(result["terms"]) == set(TERMS)
    for name, now in zip(TERMS, WEIGHTS, strict=True):
        term = result["terms"][name]
        assert term["weight"] == now
        # The shipped weights come from such a fit, of more players.
        assert abs(term["fitted"] - now) < 6 * term["error"] + 0.1, name
    assert set(result["players"]) == {"strategist", "greedy"}
    for told in result["players"].values():
        assert told["nats"] < told["prior_nats"]
        assert told["decisions"] == 75
    assert sum(told["decisions"] for told in result["turns"]) == 150
    assert [told["from"] for told in result["turns"]] == sorted(told["from"] for told in result["turns"])
    assert result["command"] == "ginrummy fit belief strategist greedy --positions 300 --samples 40 --seed 5"
    assert fit_belief(["strategist", "greedy"], positions=300, samples=40, seed=5) == result


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "belief.json"
    words = ["fit", "belief", "greedy", "--positions", "60", "--samples", "10", "--rules", "plus20"]
    assert cli.main([*words, "--out", str(out)]) == 0
    told = json.loads(out.read_text())
    shown = capsys.readouterr().out
    assert "what speaks for a hand of the opponent" in shown
    assert re.search(r"from turn 0 +│ +\d", shown)
    assert all(name in shown for name in TERMS)
    assert told["command"].endswith("--rules plus20")
    assert belief_table(told)
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nobody"], "'nobody' is no agent"),
        (["greedy", "--positions", "5"], "positions is 5; expected at least 40"),
        (["greedy", "--samples", "1"], "samples is 1; expected at least 2"),
    ],
)
def test_errors(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fit", "belief", *words]) == 2
    assert says in capsys.readouterr().err
