"""Fits what a search believes about the opponent's hand: `agents.worlds.WEIGHTS`, by the greatest likelihood.

Players play themselves, and some of their decisions are kept: what the player to move sees, and the hand that the
opponent has. Beside it stand hands that it may have, drawn as a search draws them. The weights are then those under
which the true hand is likeliest among all: a conditional logit (McFadden 1974), in which each hand counts by how much
likelier than so far it becomes (Ma and Collins 2018, "Noise contrastive estimation and negative sampling for
conditional models", on why few drawn hands do). A quarter of the decisions is kept out of the fit and judges it.
"""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table

import agents
from agents.lookahead import unseen_cards
from agents.worlds import BELIEF, TERMS, WEIGHTS, sample_hands, terms
from gin_env import engine
from gin_env.cards import NUM_CARDS
from gin_env.melds import deadwood
from gin_env.rules import Rules, as_rules
from gin_env.tables import DECLARE
from gin_env.view import observe

PLAYERS = ("best", "strategist", "lookahead", "greedy", "gin-only", "early-knock")
TABLES = 64
SHARE = 0.05  # of the decisions is kept: those of a hand are much alike
HELD_OUT = 4  # one decision of so many
TURNS = (0, 3, 6, 9, 12)  # where rows of the table begin
# How firmly weights are held to zero, beside what a decision tells of them: keeps them finite where a few decisions say
# that a term explains everything.
PRIOR = 0.003

_CARDS = np.arange(NUM_CARDS, dtype=np.uint64)


def fit_belief(
    players: Sequence[str] = PLAYERS,
    *,
    positions: int = 2000,
    samples: int = 200,
    seed: int = 0,
    rules: Rules | str = "cardpuzzle",
    progress: Callable[[int, int], None] = lambda finished, positions: None,
) -> dict[str, Any]:
    """Fits the weights of the belief, and says how well it guesses as it is.

    Args:
        players: Whose hands are learned from, each against itself.
        positions: Decisions of each.
        samples: Hands that are drawn for each decision.
        seed: Of deals, choices and drawn hands.
        rules: What is played.
        progress: Called now and then with the number of decisions so far and of all.

    Returns:
        Plain values. ``terms``: of each its weight now, the fitted one and its standard error. ``players``: of each, on
        the decisions kept out, ``gain``, the nats by which its true hands become likelier with the fitted weights;
        ``nats`` an unseen card that the hands drawn by the present weights miss by, and ``prior_nats`` by counting
        cards alone. ``turns``: by turns of the opponent the same, and its points of deadwood, true and believed.

    Raises:
        ValueError: If an argument is out of range, or there is no such player.
    """
    for name, number, least in (("positions", positions, 40), ("samples", samples, 2)):
        if number < least:
            raise ValueError(f"{name} is {number}; expected at least {least}")
    if not players:
        raise ValueError("there is no player to learn from; expected one at least")
    rules = as_rules(rules)
    drawn, rows = [], []
    for number, player in enumerate(players):
        for spoken, row in _decisions(player, rules, positions, samples, [seed, number]):
            drawn.append(spoken)
            rows.append((number, *row))
            if len(rows) % 50 == 0:
                progress(len(rows), positions * len(players))
    told = np.array(drawn)  # (decisions, 1 + samples, terms), the true hand first
    who, turn, nats, prior, true, believed = np.array(rows).T
    held_out = np.arange(len(rows)) % HELD_OUT == 0
    fitted, error = _likeliest(told[~held_out])
    gain = _log_likelihood(told, fitted)[0]

    def summary(chosen: np.ndarray) -> dict[str, Any]:
        return {
            "decisions": int(chosen.sum()),
            "gain": float(gain[chosen].mean()),
            "nats": float(nats[chosen].mean()),
            "prior_nats": float(prior[chosen].mean()),
            "deadwood": float(true[chosen].mean()),
            "believed": float(believed[chosen].mean()),
        }

    ends = (*TURNS[1:], np.inf)
    parts = ((begin, held_out & (turn >= begin) & (turn < end)) for begin, end in zip(TURNS, ends, strict=True))
    words = ["ginrummy", "fit", "belief", *players, "--positions", positions, "--samples", samples, "--seed", seed]
    if rules.text != "cardpuzzle":
        words += ["--rules", rules.text]
    return {
        "command": shlex.join(map(str, words)),
        "rules": {"name": rules.text, "fingerprint": rules.fingerprint},
        "terms": {
            name: {"weight": float(now), "fitted": float(weight), "error": float(off)}
            for name, now, weight, off in zip(TERMS, WEIGHTS, fitted, error, strict=True)
        },
        "players": {player: summary(held_out & (who == number)) for number, player in enumerate(players)},
        "turns": [{"from": begin, **summary(chosen)} for begin, chosen in parts if chosen.any()],
    }


def _decisions(player: str, rules: Rules, positions: int, samples: int, seed: list[int]) -> Any:
    """Yields what speaks for the true hand and for drawn ones, and the figures of a decision's row, one by one."""
    agent = agents.make(player)
    rng = np.random.default_rng(seed)
    tables = engine.new_tables(rules, TABLES, seed=int(rng.integers(1 << 62)))
    found = 0
    while True:
        view, mask = observe(tables), engine.legal(tables)
        chosen = agent.act(view, mask, rng.integers(1 << 63, size=TABLES, dtype=np.uint64))
        for row in np.flatnonzero((view["phase"] < DECLARE) & (rng.random(TABLES) < SHARE)):
            true = tables["hands"][row, 1 - view["seat"][row]]
            hands = sample_hands(view, samples, int(rng.integers(1 << 62)), int(row))
            spoken, _ = terms(view, np.append(true, hands), int(row))
            points = deadwood(np.append(true, hands))
            yield spoken, (view["draws"][row] / 2, *_guess(view[row], true, hands), points[0], points[1:].mean())
            found += 1
            if found == positions:
                return
        engine.step(tables, chosen, redeal=True)


def _guess(v: np.void, true: np.uint64, hands: np.ndarray) -> tuple[float, float]:
    """Returns by how many nats an unseen card drawn hands miss the true one, and counting alone does."""
    unseen = (np.uint64(unseen_cards(v)) >> _CARDS & np.uint64(1)).astype(bool)
    held = (true >> _CARDS & np.uint64(1)).astype(bool)[unseen]
    share = ((hands[:, None] >> _CARDS & np.uint64(1)).sum(axis=0)[unseen] + 1.0) / (hands.size + 2)
    prior = min(max(held.mean(), 0.5 / held.size), 1 - 0.5 / held.size)
    return tuple(float(-np.log(np.where(held, chance, 1 - chance)).mean()) for chance in (share, prior))  # type: ignore[return-value]


def _log_likelihood(told: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns by how many nats the true hands become likelier than by `WEIGHTS`, and the chance of every hand."""
    change = told @ (weights - WEIGHTS)
    most = change.max(axis=1, keepdims=True)
    counts = np.exp(change - most)
    mean = counts.mean(axis=1)
    return change[:, 0] - most[:, 0] - np.log(mean), counts / (mean * change.shape[1])[:, None]


def _likeliest(told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the weights of the greatest likelihood and their standard errors, by Newton's method."""
    held = PRIOR * told.var(axis=1).sum(axis=0) + 1e-9

    def value(weights: np.ndarray) -> float:
        return float(_log_likelihood(told, weights)[0].sum() - held @ weights**2 / 2)

    weights = np.asarray(WEIGHTS)
    best = value(weights)
    for _ in range(100):
        _, counts = _log_likelihood(told, weights)
        mean = np.einsum("ns,nst->nt", counts, told)
        slope = (told[:, 0] - mean).sum(axis=0) - held * weights
        curve = np.einsum("ns,nst,nsu->tu", counts, told, told) - mean.T @ mean + np.diag(held)
        step = np.linalg.solve(curve, slope)
        while (reached := value(weights + step)) < best and np.abs(step).max() > 1e-9:
            step = step / 2
        if np.abs(step).max() <= 1e-9:
            break
        weights, best = weights + step, reached
    return weights, np.sqrt(np.diag(np.linalg.inv(curve)))


def belief_table(result: dict[str, Any]) -> Group:
    """Returns a result of `fit_belief` as tables."""
    meanings = {name: meaning for name, _, meaning in BELIEF}
    weights = Table(title="what speaks for a hand of the opponent, nats for each")
    for heading in ("", "weight", "fitted", "error"):
        weights.add_column(heading, justify="right" if heading else "left")
    weights.add_column("of")
    for name, term in result["terms"].items():
        numbers = (f"{term[key]:+.4f}" for key in ("weight", "fitted"))
        weights.add_row(name, *numbers, f"{term['error']:.4f}", meanings[name])

    guesses = Table(title="how well the present weights guess, by player and by turns of the opponent")
    for heading in ("", "decisions", "nats a card", "by counting", "deadwood", "believed", "fit gains, nats"):
        guesses.add_column(heading, justify="right" if heading else "left")
    named = list(result["players"].items())
    named += [(f"from turn {part['from']}", part) for part in result["turns"]]
    for place, (name, part) in enumerate(named, 1):
        guesses.add_row(
            name,
            f"{part['decisions']:,}",
            *(f"{part[key]:.4f}" for key in ("nats", "prior_nats")),
            *(f"{part[key]:.1f}" for key in ("deadwood", "believed")),
            f"{part['gain']:+.3f}",
            end_section=place == len(result["players"]),
        )
    return Group(weights, guesses)


__all__ = ["PLAYERS", "belief_table", "fit_belief"]
