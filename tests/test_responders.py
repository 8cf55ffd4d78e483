"""Responders to a frozen player: what they win is a lower bound, told of deals on which the best was not chosen."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import agents
from agents.base import scripted
from agents.match import play_games, play_match
from agents.result import pair_interval
from experiments import responders
from experiments.cli import main
from experiments.exploit import exploitability
from experiments.miniature import MINIATURES
from experiments.responders import folder_of, respond, respond_line, respond_report, respond_table, train_responders
from gin_env.actions import DISCARD, DRAW, TAKE
from gin_env.engine import mix_keys
from gin_env.rules import preset
from gin_env.view import View

TINY = MINIATURES["tiny"]
RECIPE = """# For tests.
tables = 64
horizon = 32
minibatch = 512
learning_rate = 1e-2
width = 16
layers = 1
threads = 1
eval_every = 16_384
eval_deals = 200
checkpoint_every = 1_000_000
[opponents]
random = 0.5
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


class Fool:
    """Draws, never knocks, throws the first card: every responder wins much from it."""

    name = "fool"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        plain = np.where(mask[:, DRAW] != 0, DRAW, 0)
        throws = mask[:, DISCARD : DISCARD + 52]
        return np.where(throws.any(axis=1), DISCARD + throws.argmax(axis=1), plain)


def test_the_best_is_chosen_on_other_deals_than_it_is_measured_on() -> None:
    result = respond("greedy", deals=300, seed=4)
    best = result["best"]
    assert result["responders"][0]["name"] == best != "greedy"
    assert {one["name"] for one in result["responders"]} == set(scripted())
    assert all(one["deals"] == 60 and not one["trained"] for one in result["responders"])
    means = [one["points_per_hand"] for one in result["responders"]]
    assert means == sorted(means, reverse=True)
    chosen = play_match(agents.make(best), agents.make("greedy"), deals=60, seed=4)
    assert (means[0], tuple(result["responders"][0]["ci95"])) == (chosen.points_per_hand, chosen.ci95)
    games = play_games(agents.make(best), agents.make("greedy"), deals=300, first=60, seed=4)
    mean, interval = pair_interval(games.points)
    assert (result["gain"], tuple(result["ci95"])) == (mean, interval)
    assert result["at_least"] == max(interval[0], 0)
    assert (result["first"], result["deals"], result["forfeits"]) == (60, 300, 0)


def test_choosing_among_many_equals_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty noisy copies of a player: the best of them looks good where it is chosen, and is not elsewhere."""

    class Noisy:
        def __init__(self, number: int) -> None:
            self.name = f"noisy {number}"
            self.number = number

        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            act = agents.make("greedy").act(view, mask, rng)
            draws = (mask[:, DRAW] != 0) & (mask[:, TAKE] != 0) & (mix_keys(self.number, rng) % 2 == 0)
            return np.where(draws, DRAW, act)

    monkeypatch.setattr(responders, "scripted", lambda: [])
    copies = [(f"noisy {number}", Noisy(number)) for number in range(30)]
    result = respond("early-knock", trained=copies, deals=500, seed=1)
    chosen = [one["points_per_hand"] for one in result["responders"]]
    middle = float(np.mean(chosen))
    assert chosen[0] > middle + 1
    assert abs(result["gain"] - middle) < (result["ci95"][1] - result["ci95"][0]) / 2 + 0.3


def test_a_forfeit_is_a_weakness(monkeypatch: pytest.MonkeyPatch) -> None:
    make = agents.make
    monkeypatch.setattr(responders.agents, "make", lambda spec: Fool() if spec == "fool" else make(spec))
    result = respond("fool", deals=20)
    assert result["at_least"] > 10
    assert result["forfeits"] == 0
    # At the stock's end it draws on where there is nothing: that is counted, not hidden.
    result = respond("fool", "openspiel", deals=20)
    assert result["gain"] > 10


def test_a_trained_responder_wins_no_more_than_a_best_response(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(responders, "scripted", lambda: [])
    trained = train_responders("random", TINY, recipe=recipe, folder=tmp_path / "runs", seeds=(1,), steps=20_000)
    assert trained[0][0] == "against-random-1@20480"
    result = respond("random", TINY, trained=trained, deals=1000)
    exact = exploitability(agents.make("random"), TINY)
    assert result["best"].startswith("against-random-1@")
    assert result["responders"][0]["trained"]
    assert 1 < result["gain"]  # it has learned something
    assert result["ci95"][0] < exact.exploitability
    config = json.loads((folder_of(tmp_path / "runs", "random", 1) / "config.json").read_text())
    # One player at every table, and both roles, though seat 0 always deals in this game.
    assert (config["opponents"], config["eval_against"]) == ({"random": 1.0}, ["random"])
    assert "first_dealer" in TINY.text
    assert "first_dealer" not in config["rules"]


def test_training_goes_on_and_is_not_done_twice(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    options = {"recipe": recipe, "folder": tmp_path, "seeds": (1, 2)}
    whole = train_responders("greedy", TINY, **options, steps=6_000)
    assert [name.partition("@")[0] for name, _ in whole] == ["against-greedy-1", "against-greedy-2"]
    again = train_responders("greedy", TINY, **options, steps=6_000)
    assert [name for name, _ in again] == [name for name, _ in whole]
    assert "already reached" in capsys.readouterr().err

    # Out of time after one update; the next calls go on from there and end with the same weights.
    other = {**options, "folder": tmp_path / "timed", "seeds": (1,)}
    steps = []
    for _ in range(9):
        ((name, agent),) = train_responders("greedy", TINY, **other, steps=6_000, seconds=0)
        steps.append(int(name.partition("@")[2]))
        if steps[-1] >= 6_000:
            break
    assert steps == [2048, 4096, 6144]
    for one, two in zip(agent.network.state_dict().values(), whole[0][1].network.state_dict().values(), strict=True):
        assert (one == two).all()
    with pytest.raises(ValueError, match="another"):
        train_responders("greedy", TINY, **options, steps=8_000)


def test_manual_rules_are_trained_without_laying(recipe: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rules = preset("cardpuzzle", knocker_melds="manual", layoffs="manual", defender_melds="manual")
    trained = train_responders("greedy", rules, recipe=recipe, folder=tmp_path, seeds=(3,), steps=2_000)
    result = respond("greedy", rules, trained=trained, deals=20)
    assert {one["name"] for one in result["responders"]} == {*scripted(), "against-greedy-3@2048"}


def test_what_is_refused(recipe: Path, tmp_path: Path) -> None:
    options = {"recipe": recipe, "folder": tmp_path}
    with pytest.raises(ValueError, match="no player is named"):
        respond_report([], "cardpuzzle", **options)
    with pytest.raises(ValueError, match="'nobody' is no agent"):
        respond_report(["greedy", "nobody"], "cardpuzzle", **options)
    with pytest.raises(ValueError, match="steps is -1"):
        respond_report(["greedy"], "cardpuzzle", **options, steps=-1)
    with pytest.raises(ValueError, match="deals is 9; expected at least 10"):
        respond("greedy", deals=9)
    assert not list(tmp_path.glob("against*"))


def test_folders_have_plain_names(tmp_path: Path) -> None:
    assert folder_of(tmp_path, "bots/quick", 2) == tmp_path / "against-bots_quick-2"
    assert folder_of(tmp_path, "greedy:knock=5,late_knock=0", 1) == tmp_path / "against-greedy_knock=5_late_knock=0-1"


def test_words() -> None:
    result = respond("greedy", deals=2000)
    assert respond_line(result).startswith("greedy can be exploited by at least ")
    assert "lower bound" in respond_line(result)
    assert respond_table(result, "cardpuzzle").row_count == len(scripted()) + 1
    none = result | {"gain": 0.1, "ci95": [-0.2, 0.4], "at_least": 0.0}
    assert respond_line(none).startswith("nothing was found that surely beats greedy")


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["exploit", "greedy", "--steps", "0", "--deals", "100"]
    assert main([*words, "--json", "--out", str(tmp_path / "told.json")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "told.json").read_text())
    assert told["rules"]["name"] == "cardpuzzle"
    assert told["agents"][0] == respond("greedy", deals=100)
    assert main(words) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == respond_line(told["agents"][0])
    assert main(["exploit", "--steps", "0"]) == 2


def test_command_trains(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    words = ["exploit", "random", "--rules", "tiny", "--method", "train", "--recipe", str(recipe), "--steps", "2000"]
    words += ["--deals", "50", "--run", str(tmp_path / "runs"), "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert "against-random-1@2048" in {one["name"] for one in told["agents"][0]["responders"]}
    assert (told["steps"], told["seeds"]) == (2000, [1])


def test_ctrl_c_leaves_a_checkpoint(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    import signal

    from training import ppo

    update = ppo.Trainer.update

    def interrupted(self: ppo.Trainer, watch: object) -> dict[str, float]:
        signal.raise_signal(signal.SIGINT)
        return update(self, watch)

    words = ["exploit", "random", "--rules", "tiny", "--method", "train", "--recipe", str(recipe), "--steps", "4000"]
    words += ["--deals", "50", "--run", str(tmp_path / "runs"), "--json"]
    monkeypatch.setattr(ppo.Trainer, "update", interrupted)
    assert main(words) == 130
    assert "the same command goes on from it" in capsys.readouterr().err
    monkeypatch.setattr(ppo.Trainer, "update", update)
    assert main(words) == 0
    said = capsys.readouterr()
    assert "going on with" in said.err
    assert "against-random-1@4096" in said.out


def test_small_games_are_solved_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exploit", "greedy", "--rules", "tiny", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["agents"][0]["exploitability"] == pytest.approx(
        exploitability(agents.make("greedy"), TINY).exploitability
    )
    console = Console(record=True, width=100)
    console.print(respond_table(respond("greedy", deals=20), "cardpuzzle"))
    assert "other deals" in console.export_text()
