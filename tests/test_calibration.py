"""How a network guesses the opponent's hand: scored as restated, and what counts alone scores as counting does."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch")

import torch

from agents.networks import SuitNet
from experiments import calibration, cli
from experiments.calibration import calibrate, load_guesser, plot_calibration
from gin_env import engine
from gin_env.cards import from_mask
from gin_env.view import look
from tests.test_agents import played


def test_the_shipped_player_guesses_better_than_by_counting() -> None:
    result = calibrate("best", deals=60, seed=3)
    assert result["nats"] < result["prior_nats"]
    assert result["calibration_error"] < 0.05
    assert sum(one["cards"] for one in result["bins"]) > 10_000
    for one in result["bins"]:
        assert 0 <= one["there"] <= 1
    assert [turn["draws"] for turn in result["turns"]] == sorted({turn["draws"] for turn in result["turns"]})
    assert calibrate("best", deals=60, seed=3) == result


def test_score_restated() -> None:
    torch.manual_seed(2)
    network = SuitNet(width=16, hand=True)
    torch.nn.init.normal_(network.hand_out.weight, std=0.5)
    tables = played("cardpuzzle", 30, 12)
    observation, mask = look(tables)
    hands = tables["hands"][np.arange(30), 1 - tables["mover"]]
    draws = np.arange(30) // 10
    by_turn: dict[int, np.ndarray] = {}
    bins = np.zeros((calibration.BINS, 3))
    calibration._score(network, observation, mask, hands, draws, by_turn, bins)
    with torch.inference_mode():
        guess = torch.sigmoid(network.outputs(torch.from_numpy(observation), torch.from_numpy(mask))[2].double())
    cards, nats = 0, 0.0
    for row in range(10, 20):
        own, known = tables["hands"][row, tables["mover"][row]], tables["known"][row, 1 - tables["mover"][row]]
        pile = tables["pile"][row, : tables["pile_size"][row]].tolist()
        for card in set(range(52)) - {*from_mask(int(own)), *from_mask(int(known)), *pile}:
            chance, there = float(guess[row, card]), int(hands[row]) >> card & 1
            cards += 1
            nats -= math.log(chance if there else 1 - chance)
    assert by_turn[1][:2].tolist() == [10, cards]
    assert by_turn[1][2] == pytest.approx(nats)
    assert bins[:, 2].sum() == sum(sums[1] for sums in by_turn.values())
    assert bins[:, 1].sum() == pytest.approx(30 * 10 - sum(int(k).bit_count() for k in _known(tables)))
    for place in np.flatnonzero(bins[:, 2]):
        assert place / calibration.BINS <= bins[place, 0] / bins[place, 2] <= (place + 1) / calibration.BINS


def _known(tables: np.ndarray) -> np.ndarray:
    known: np.ndarray = tables["known"][np.arange(tables.size), 1 - tables["mover"]]
    return known


def test_a_guess_that_only_counts_scores_as_counting_does() -> None:
    network = SuitNet(width=16, hand=True)
    torch.nn.init.zeros_(network.hand_out.weight)
    tables = engine.new_tables("cardpuzzle", 50)
    by_turn: dict[int, np.ndarray] = {}
    bins = np.zeros((calibration.BINS, 3))
    hands = tables["hands"][np.arange(50), 1 - tables["mover"]]
    calibration._score(network, *look(tables), hands, np.zeros(50, dtype=int), by_turn, bins)
    assert by_turn[0][2] == pytest.approx(by_turn[0][3])
    assert np.flatnonzero(bins[:, 2]).tolist() == [4]  # 10 of 41


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "guess.json"
    assert cli.main(["calibrate", "--deals", "20", "--against", "greedy", "--out", str(out)]) == 0
    told = json.loads(out.read_text())
    assert told["opponent"] == "greedy"
    assert "nats an unseen card" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    plot_calibration(told, tmp_path / "guess.png")
    assert (tmp_path / "guess.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["greedy"], "'greedy' is neither a run nor a bundle"),
        (["--deals", "0"], "deals is 0; expected at least 1"),
        (["--against", "nobody"], "'nobody' is no agent"),
    ],
)
def test_errors(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_network_without_a_guess(tmp_path: Path) -> None:
    from training.config import PPOConfig
    from training.ppo import train

    config = PPOConfig(total_steps=16, tables=4, horizon=4, minibatch=16, width=8, layers=1, threads=1, eval_deals=2)
    train(config, tmp_path / "run")
    with pytest.raises(ValueError, match="makes no guess at the opponent's hand"):
        load_guesser(str(tmp_path / "run"))
