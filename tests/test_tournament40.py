"""Round robins of Rummy40: the same result however they are played, and what the report says of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("choix")

from experiments import cli
from experiments.page import html_page, markdown
from experiments.sheets import sheets
from experiments.standings import TournamentResult
from experiments.tournament import PIECES, TournamentError, make_plan, play_tournament
from gin_env.rummy40 import as_rules

PLAYERS = ("random", "patient", "greedy")  # not in alphabetical order
FOUR = "rummy40:seats=4,limit=60"


def play(*players: str, **options: Any) -> TournamentResult:
    return play_tournament(
        players or PLAYERS, **{"deals": 12, "seed": 5, "resamples": 10, "rules": FOUR, "game": "rummy40"} | options
    )


def plain(result: TournamentResult) -> Any:
    """The result as a program reads it, without the times."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(part) for key, part in value.items() if key != "speed"}
        return [without(part) for part in value] if isinstance(value, list) else value

    return without(json.loads(json.dumps(result.to_json(), allow_nan=False)))


@pytest.fixture(scope="module")
def whole() -> TournamentResult:
    return play()


def test_order_pieces_workers_and_interruptions_change_nothing(whole: TournamentResult, tmp_path: Path) -> None:
    assert plain(play("greedy", "random", "patient", piece=5, batch=7)) == plain(whole)
    play(deals=7, folder=tmp_path, piece=3)
    kept = sorted((tmp_path / PIECES).iterdir())
    assert len(kept) == 9
    kept[0].write_bytes(b"damaged")
    said: list[str] = []
    assert plain(play(folder=tmp_path, workers=2, say=said.append)) == plain(whole)
    assert "is damaged and is played again" in said[0]
    assert said[-1] == "18 of 36 duplicate deals are there already"
    with pytest.raises(TournamentError, match="its rules is"):
        play(folder=tmp_path, rules="rummy40")


def test_what_the_numbers_are(whole: TournamentResult) -> None:
    told = plain(whole)
    assert told["game"] == "rummy40"
    assert told["rules"] == {"name": FOUR, "fingerprint": as_rules(FOUR).fingerprint}
    assert told["standings"][-1]["spec"] == "random"
    total = sum(one.field.points_per_hand for one in whole.standings)
    assert total == pytest.approx(0, abs=1e-9)  # every pairing has as many hands
    assert sum(one.field.win_rate for one in whole.standings) == pytest.approx(1.5)
    assert all(one.field.games.shape == (24, 8) for one in whole.standings)
    first = whole.standings[0]
    low, high = first.field.ci95
    assert low < first.field.points_per_hand < high
    # Of a single pairing the field is that pairing.
    pair = play("greedy", "random")
    for one in pair.standings:
        mine = pair.pairings[0, 1] if one.entry.spec == "greedy" else None
        mean, interval = pair.margin(one, next(other for other in pair.standings if other is not one))
        assert one.field.points_per_hand == pytest.approx(mean)
        assert one.field.ci95 == pytest.approx(interval)
        if mine is not None:
            assert one.field.win_ci95 == pytest.approx(mine.win_ci95)


def test_whole_matches() -> None:
    result = play("greedy", "random", match=True, deals=6)
    best = result.standings[0]
    assert best.entry.spec == "greedy"
    assert best.field.hands > best.field.games.size == 48
    mean, _ = result.margin(*result.standings)
    assert mean == pytest.approx(best.field.win_rate - 0.5)
    _, cross, _ = sheets(result)
    assert cross.rows[0][2].text == f"{100 * best.field.win_rate:.1f} %"


def test_the_report(whole: TournamentResult) -> None:
    standings, _, behaviour = sheets(whole)
    assert [row[0].text for row in behaviour.rows][:2] == ["goes out", "opens"]
    assert len(behaviour.rows) == 6 + 4
    assert "deals (who took more points in all games)" in standings.note
    page = html_page(whole, "ginrummy tournament", {})
    assert "<title>Rummy40 tournament</title>" in page
    assert "12 deals, each played 8 times by every two of them" in page
    assert "alone against the other in all other seats" in page
    assert "goes out" in markdown(whole, "ginrummy tournament")


def test_plots(whole: TournamentResult) -> None:
    pytest.importorskip("matplotlib")
    from experiments.page import draw

    plots = draw(whole)
    assert list(plots)[2] == "How hands end for a player."
    assert all(svg.startswith("<svg") for svg in plots.values())


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["tournament", "greedy", "random", "--game", "rummy40", "--deals", "8", "--resamples", "5"]
    assert cli.main([*words, "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rules"]["name"] == "rummy40"
    assert np.isfinite(told["standings"][0]["elo"])
    command = json.loads((tmp_path / "result.json").read_text())["command"]
    assert command == "ginrummy tournament greedy random --deals 8 --seed 0 --rules rummy40 --game rummy40"


def test_plans_of_gin_are_as_they_were() -> None:
    assert "game" not in make_plan(["greedy", "random"]).to_json()
    assert make_plan(["greedy", "random"], "rummy40", game="rummy40").to_json()["game"] == "rummy40"
    with pytest.raises(ValueError, match="'whist' is no game: expected gin or rummy40"):
        make_plan(["greedy", "random"], game="whist")
