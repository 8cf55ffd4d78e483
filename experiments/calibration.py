"""How well a network guesses the opponent's hand, and whether what it says may be taken at its word.

A network trained with ``hand_weight`` says of every unseen card how likely the opponent holds it. It is scored in nats
for each unseen card (the cross-entropy), turn by turn, beside the prior that only counts: every unseen card is as
likely as any other. Of the cards to which it gives 30 %, three in ten should be there: that is calibration.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from safetensors.torch import load_file

import agents
from agents.bundle import CONFIG, PRETRAINED, WEIGHTS, read_config
from agents.networks import Network, build_network
from agents.neural import CheckpointAgent
from gin_env import engine
from gin_env.cards import NUM_CARDS
from gin_env.rules import Rules, as_rules, automatic
from gin_env.tables import DECLARE
from gin_env.view import PLANE, encode, observe

BINS = 20
AGENT_STREAM = 1 << 62  # of the players' keys, far from the numbers of tables
_CARDS = np.arange(NUM_CARDS, dtype=np.uint64)


def load_guesser(spec: str) -> Network:
    """Returns the network of a run or a bundle, if it guesses the opponent's hand.

    Raises:
        ValueError: If it is neither, or makes no guess.
    """
    folder = PRETRAINED / "best" if spec == "best" else Path(spec)
    if (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file():
        settings = read_config(folder)["network"]
        network = build_network(settings["name"], settings["settings"])
        network.load_state_dict(load_file(folder / WEIGHTS))
        network.eval()
    elif folder.is_dir() or folder.suffix == ".safetensors":
        network = CheckpointAgent(folder, any_rules=1).network
    else:
        raise ValueError(f"{spec!r} is neither a run nor a bundle: only a network guesses hands")
    if not network.settings.get("hand"):
        raise ValueError(f"{spec!r} makes no guess at the opponent's hand: it was trained with hand_weight = 0")
    return network


def calibrate(
    spec: str, opponent: str = "", *, deals: int = 2000, rules: Rules | str = "cardpuzzle", seed: int = 0
) -> dict[str, Any]:
    """Scores the guesses of a network while it plays.

    Args:
        spec: The folder of a run or of a bundle, or "best".
        opponent: Whose hand is guessed; by default the same player's.
        deals: Hands to play; it has seat 0 in every other one.
        rules: What is played.
        seed: Of the deals and of the players.

    Returns:
        For JSON: ``nats`` and ``prior_nats`` for each unseen card, ``turns`` (the same by own draws so far, with the
        number of decisions), ``bins`` (the mean guess, the share that was there and the number of cards for guesses in
        20 equal parts of 0 to 1), and ``calibration_error``, the mean of their differences weighed by number.

    Raises:
        ValueError: If there is no such network or player, or ``deals`` is below 1.
    """
    if deals < 1:
        raise ValueError(f"deals is {deals}; expected at least 1")
    network = load_guesser(spec)
    rules = automatic(as_rules(rules))
    player = agents.make(spec)
    players = (player, agents.make(opponent) if opponent else player)
    tables = engine.new_tables(rules, deals, seed=seed)
    side = (np.arange(deals) % 2).astype(np.int8)  # the seat of the player that guesses
    by_turn: dict[int, np.ndarray] = {}
    bins = np.zeros((BINS, 3))
    stream = int(engine.mix_keys(seed, np.array([AGENT_STREAM], dtype=np.uint64))[0])
    while (tables["phase"] < DECLARE).any():
        actions = np.full(deals, engine.NO_ACTION, dtype=np.int64)
        for number, one in enumerate(players):
            rows = np.flatnonzero((tables["phase"] < DECLARE) & ((tables["mover"] == side) == (number == 0)))
            if not rows.size:
                continue
            some = tables.take(rows)
            view = observe(some)
            actions[rows] = one.act(view, engine.legal(some), engine.decision_keys(stream, some))
            if number == 0:
                hands = some["hands"][np.arange(rows.size), 1 - some["mover"]]
                _score(network, encode(view), engine.legal(some), hands, (view["draws"] + 1) // 2, by_turn, bins)
        engine.step(tables, actions)
    turns = [
        {
            "draws": int(draws),
            "decisions": int(sums[0]),
            "nats": float(sums[2] / sums[1]),
            "prior_nats": float(sums[3] / sums[1]),
        }
        for draws, sums in sorted(by_turn.items())
    ]
    cards, nats, prior = np.sum(list(by_turn.values()), axis=0)[1:]
    filled = bins[bins[:, 2] > 0]
    return {
        "player": player.name,
        "opponent": players[1].name,
        "rules": rules.text,
        "deals": deals,
        "seed": seed,
        "nats": float(nats / cards),
        "prior_nats": float(prior / cards),
        "calibration_error": float(abs(filled[:, 0] - filled[:, 1]).sum() / filled[:, 2].sum()),
        "turns": turns,
        "bins": [
            {"guess": float(guess / size), "there": float(there / size), "cards": int(size)}
            for guess, there, size in filled
        ],
    }


def _score(
    network: Network,
    observation: np.ndarray,
    mask: np.ndarray,
    hands: np.ndarray,
    draws: np.ndarray,
    by_turn: dict[int, np.ndarray],
    bins: np.ndarray,
) -> None:
    """Adds decisions, unseen cards, nats and the prior's nats by turn; sums of guesses, truths and cards by bin."""
    with torch.inference_mode():
        logits = network.outputs(torch.from_numpy(observation), torch.from_numpy(mask))[2]
    assert logits is not None
    guess = torch.sigmoid(logits.double()).numpy().clip(1e-12, 1 - 1e-12)
    there = (hands[:, None] >> _CARDS & np.uint64(1)).astype(bool)
    unseen = observation[:, PLANE["unseen"] : PLANE["unseen"] + NUM_CARDS] > 0
    share = (there & unseen).sum(axis=1) / unseen.sum(axis=1)
    prior = np.where(there, share[:, None], 1 - share[:, None]).clip(1e-12)
    nats = -np.log(np.where(there, guess, 1 - guess))
    for turn in np.unique(draws):
        rows = draws == turn
        which = unseen & rows[:, None]
        sums = by_turn.setdefault(int(turn), np.zeros(4))
        sums += [rows.sum(), which.sum(), nats[which].sum(), -np.log(prior[which]).sum()]
    place = np.minimum((guess * BINS).astype(int), BINS - 1)
    for column, weights in enumerate((guess, there, np.ones_like(guess))):
        bins[:, column] += np.bincount(place[unseen], weights[unseen].astype(float), minlength=BINS)


def print_calibration(result: dict[str, Any], console: Console) -> None:
    """Prints the turns, the bins and a line that says it all."""
    table = Table(title=f"how {result['player']} guesses the hand of {result['opponent']}, nats an unseen card")
    for column in ("own draws", "decisions", "guess", "counting", "saved"):
        table.add_column(column, justify="right")
    for turn in result["turns"]:
        saved = 1 - turn["nats"] / turn["prior_nats"] if turn["prior_nats"] > 0 else math.nan
        cells = (f"{turn['nats']:.3f}", f"{turn['prior_nats']:.3f}", f"{saved:.1%}")
        table.add_row(str(turn["draws"]), f"{turn['decisions']:,}", *cells)
    console.print(table)
    table = Table(title="of the cards that it gives this chance, so many were there")
    for column in ("chance", "there", "cards"):
        table.add_column(column, justify="right")
    for one in result["bins"]:
        table.add_row(f"{one['guess']:.1%}", f"{one['there']:.1%}", f"{one['cards']:,}")
    console.print(table)
    console.print(
        f"{result['nats']:.4f} nats an unseen card, {result['prior_nats']:.4f} by counting alone; "
        f"calibration error {result['calibration_error']:.2%}",
        style="bold",
        highlight=False,
    )


def plot_calibration(result: dict[str, Any], path: Path) -> None:
    """Draws both into a picture.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    draws = [turn["draws"] for turn in result["turns"]]
    for name, label in (("prior_nats", "counting"), ("nats", str(result["player"]))):
        left.plot(draws, [turn[name] for turn in result["turns"]], marker=".", label=label)
    left.set(xlabel="own draws", ylabel="nats an unseen card", ylim=(0, None))
    left.legend()
    sizes = np.array([one["cards"] for one in result["bins"]], dtype=float)
    right.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    guesses, there = ([one[name] for one in result["bins"]] for name in ("guess", "there"))
    right.scatter(guesses, there, s=10 + 150 * np.sqrt(sizes / sizes.max()))
    right.set(xlabel="chance that it gives", ylabel="share of the cards that were there", xlim=(0, 1), ylim=(0, 1))
    figure.suptitle(f"{result['player']} guesses the hand of {result['opponent']}")
    figure.savefig(path)
