"""Recorded hands told move by move: as plain values for programs, as lines of text for people."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from gin_env import engine
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, LAYOFF, PASS, TAKE, action_name
from gin_env.cards import NUM_CARDS, RANKS, SUITS, card_name, from_mask
from gin_env.melds import arrange, deadwood_after
from gin_env.record import Record, move_text
from gin_env.render import card_text
from gin_env.tables import NOBODY, OVER, PHASES, WALL, Tables

Story = dict[str, Any]

# ------------------------------------------------------------------------------------------------------ for programs


def tell(record: Record, seats: Collection[int] = (0, 1)) -> Story:
    """Returns what happened in a record as plain values.

    Cards are names such as ``"TD"``. What only a seat that is left out could see is None: its hand, its deadwood and
    the cards it drew, until the hand is over.

    Args:
        record: What was played.
        seats: Whose cards are told.

    Raises:
        gin_env.record.RecordError: If the moves cannot be played.
    """
    story: Story = {
        "rules": {"name": record.rules.name, "text": record.rules.text, "fingerprint": record.rules.fingerprint},
        "match": record.match,
        "target": record.rules.target if record.match else None,
        "comment": record.comment,
        "hands": [],
        "winner": None,
    }
    hand: Story = {}
    move: Story = {}
    for tables in engine.replay(record):
        t = tables[0]
        played = int(t["num_moves"])
        if played == 0:
            hand = _deal(t, len(story["hands"]) + 1, seats)
            story["hands"].append(hand)
        else:
            _finish_move(move, t, seats)
            hand["moves"].append(move)
        if t["phase"] == OVER:
            _finish_hand(hand, tables)
        moves = record.hands[len(story["hands"]) - 1].moves
        if played < len(moves):
            move = move_story(t, moves[played], seats)
    # Who is to move where the record stops.
    running = t["phase"] != OVER
    story["mover"] = int(t["mover"]) if running else None
    story["phase"] = PHASES[t["phase"]]
    if record.match and t["match_winner"] != NOBODY:
        story["winner"] = int(t["match_winner"])
    return story


def _deal(t: np.void, number: int, seats: Collection[int]) -> Story:
    hands = [hand_story(int(t["hands"][seat]), t) if seat in seats else None for seat in range(2)]
    return {
        "number": number,
        "dealer": int(t["dealer"]),
        "scores": t["scores"].tolist(),
        "limit": int(t["limit"]),
        "doubled": bool(t["doubled"]),
        "hands": hands,
        "upcard": card_name(int(t["pile"][0])),
        "stock": int(t["rules"]["deck_size"] - t["stock_at"]),
        "moves": [],
        "result": None,
        "scores_after": None,
    }


def hand_story(cards: int, t: np.void) -> Story:
    """A hand as its owner would arrange it."""
    hands = np.array([cards], dtype=np.uint64)
    laid = arrange(hands, int(t["rules"]["pack"]))
    deadwood = int(laid.deadwood[0])
    if cards.bit_count() > t["rules"]["hand_size"]:
        # A card must still be thrown, and the most that saves is what counts.
        after = deadwood_after(hands)[0]
        deadwood = int(after[after >= 0].min())
    melds = [_names(int(meld)) for meld in laid.melds[0] if meld]
    return {"cards": _names(cards), "melds": melds, "deadwood": deadwood}


def _names(cards: int) -> list[str]:
    return [card_name(card) for card in from_mask(cards)]


def move_story(t: np.void, action: int, seats: Collection[int]) -> Story:
    """What is known of a move before it is played; the record may still be wrong about it."""
    seat = int(t["mover"])
    card: int | None = None
    if action == TAKE and t["pile_size"]:
        card = int(t["pile"][int(t["pile_size"]) - 1])
    elif action == DRAW and seat in seats and t["stock_at"] < t["rules"]["deck_size"]:
        card = int(t["deck"][int(t["stock_at"])])
    elif DISCARD <= action < BIG_GIN:
        card = (action - DISCARD) % NUM_CARDS
    elif action >= LAYOFF:
        card = (action - LAYOFF) % NUM_CARDS
    return {
        "number": int(t["num_moves"]) + 1,
        "seat": seat,
        "phase": PHASES[t["phase"]],
        "action": action,
        "move": move_text(action),
        "name": action_name(action),
        "card": None if card is None else card_name(card),
    }


def _finish_move(move: Story, t: np.void, seats: Collection[int]) -> None:
    """Adds the mover's hand after the move."""
    shown = move["seat"] in seats
    move["hand"] = hand_story(int(t["hands"][move["seat"]]), t) if shown else None


def _finish_hand(hand: Story, tables: Tables) -> None:
    result = engine.result(tables)
    assert result is not None  # the hand is over
    final = tables["final_hands"][0]
    hand["result"] = {
        "ending": result.ending,
        "knocker": result.knocker,
        "winner": result.winner,
        "points": result.points,
        "deadwood": list(result.deadwood),
        "hands": [_names(int(final[seat])) for seat in range(2)],
        "melds": [[meld.split() for meld in melds] for melds in result.melds],
        "layoffs": [cards.split() for cards in result.layoffs],
        "turns": result.turns,
    }
    hand["scores_after"] = tables["scores"][0].tolist()


# -------------------------------------------------------------------------------------------------------- for people

_COUNTED = ("first", "second", "third")
_INDENT = " " * 6


def print_story(story: Mapping[str, Any], console: Console) -> None:
    """Prints what `tell` returned, each move on a line of its own, and an empty line at the end."""

    def say(*parts: str | Text, style: str = "") -> None:
        console.print(Text.assemble(*parts, style=style), soft_wrap=True, highlight=False)

    say(heading(story), style="bold")
    for hand in story["hands"]:
        for line in opening_lines(story, hand):
            say(*line)
        for move in hand["moves"]:
            say(*_move_line(move))
        if hand["result"]:
            for line in ending_lines(story, hand):
                say(*line)
    if story["mover"] is not None:
        say(f"{_INDENT}seat {story['mover']} is to move: {story['phase']}")
    if story["winner"] is not None:
        say(f"seat {story['winner']} wins the match", style="bold")
    say()


Line = list[str | Text]


def heading(story: Mapping[str, Any]) -> str:
    """The line about a record: rules, kind and comment."""
    kind = f"a match to {story['target']}" if story["target"] else "a match of one hand" if story["match"] else "a hand"
    return f"{story['rules']['text']}, {kind}" + (f"  # {story['comment']}" if story["comment"] else "")


def opening_lines(story: Mapping[str, Any], hand: Mapping[str, Any]) -> list[Line]:
    """The lines about a hand before its first move."""
    limit = f"knock with {hand['limit']} or less" if hand["limit"] else "gin only"
    doubled = ", doubled" if hand["doubled"] else ""
    score = f", score {hand['scores'][0]}-{hand['scores'][1]}" if story["match"] else ""
    lines: list[Line] = [
        [f"hand {hand['number']}: seat {hand['dealer']} deals{score}; {limit}{doubled}"],
        [f"{_INDENT}upcard  ", _card(hand["upcard"]), f", stock {hand['stock']}"],
    ]
    for seat, held in enumerate(hand["hands"]):
        if held is not None:
            lines.append([f"{_INDENT}seat {seat}  ", *arranged(held["cards"], held["melds"])])
            lines[-1].append(f"  deadwood {held['deadwood']}")
    return lines


def _move_line(move: Mapping[str, Any]) -> Line:
    what = move_words(move)
    line: Line = [f"{move['number']:>4}  seat {move['seat']}  ", *what]
    # The hand once it has its size again; during the showdown nothing changes in it.
    if DISCARD <= move["action"] < BIG_GIN and move["hand"] is not None:
        width = sum(len(part) for part in what)
        line.append(" " * max(16 - width, 1))
        line += arranged(move["hand"]["cards"], move["hand"]["melds"])
        line.append(f"  deadwood {move['hand']['deadwood']}")
    return line


def move_words(move: Mapping[str, Any]) -> Line:
    """A move in words."""
    action = move["action"]
    card: str | Text = _card(move["card"]) if move["card"] else "a card"
    if action == PASS:
        stops = move["phase"] in ("declare", "lay-off", "defend")
        return ["lays off no more" if move["phase"] == "lay-off" else "lays no more" if stops else "passes"]
    if action == DRAW:
        return ["draws ", card]
    if action == TAKE:
        return ["takes ", card, " at the wall" if move["phase"] == PHASES[WALL] else ""]
    if action < KNOCK:
        return ["throws ", card]
    if action < BIG_GIN:
        return ["knocks with ", card]
    if action == BIG_GIN:
        return ["declares big gin"]
    if action < LAYOFF:
        return ["lays ", *_meld(move["name"].split()[1:])]
    return ["lays off ", card, f" on the {_COUNTED[(action - LAYOFF) // NUM_CARDS]} meld"]


def ending_lines(story: Mapping[str, Any], hand: Mapping[str, Any]) -> list[Line]:
    """The lines about a hand that is over, after its last move."""
    result = hand["result"]
    laid_off = [card for cards in result["layoffs"] for card in cards]
    lines: list[Line] = []
    for seat in range(2):
        cards = [card for card in result["hands"][seat] if card not in laid_off]
        line: Line = [f"{_INDENT}seat {seat}  ", *arranged(cards, result["melds"][seat])]
        if laid_off and seat != result["knocker"]:
            line.append("  lays off")
            comma = " "
            for number, added in enumerate(result["layoffs"]):
                if added:
                    line += [comma, *_cards(added), f" on the {_COUNTED[number]} meld"]
                    comma = ", "
        line.append(f"  deadwood {result['deadwood'][seat]}")
        lines.append(line)
    after = hand["scores_after"]
    score = f"; score {after[0]}-{after[1]}" if story["match"] else ""
    lines.append([Text(f"{_INDENT}{_sentence(result)}{score}", style="bold")])
    return lines


def _sentence(result: Mapping[str, Any]) -> str:
    """How a hand ended."""
    knocker, winner, points = result["knocker"], result["winner"], result["points"]
    return {
        "knock": f"seat {knocker} knocked and wins {points}",
        "gin": f"gin: seat {winner} wins {points}",
        "big-gin": f"big gin: seat {winner} wins {points}",
        "undercut": f"seat {knocker} knocked and is undercut: seat {winner} wins {points}",
        "tie": f"seat {knocker} knocked, a tie: nobody scores",
        "dead": "dead hand: nobody scores",
        "truncated": f"broken off after {result['turns']} draws: nobody scores",
    }[result["ending"]]


def _card(name: str) -> Text:
    shown = card_text(SUITS.index(name[1]) * len(RANKS) + RANKS.index(name[0]))
    return Text(shown, style="red" if name[1] in "HD" else "")


def _cards(names: Iterable[str]) -> Line:
    line: Line = []
    for name in names:
        line += [" ", _card(name)]
    return line[1:]


def _meld(names: Iterable[str]) -> Line:
    return ["[", *_cards(names), "]"]


def arranged(cards: Iterable[str], melds: Iterable[list[str]]) -> Line:
    """A hand: its melds, then the other cards by suit."""
    melds = list(melds)
    line: Line = []
    for meld in melds:
        line += [*_meld(meld), " "]
    loose = [card for card in cards if not any(card in meld for meld in melds)]
    return line + _cards(loose) if loose else line[:-1]
