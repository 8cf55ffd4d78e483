"""Records: one line of text holds a hand or a match, down to the last move.

    gin1 luciano hand dealer=0 deck=8CAS8H... p t 7S d KD d 2C k7D = seat 1 +12 knock # anything

A line is words separated by spaces:

    line   = "gin1" rules kind hand *("/" hand) ["#" comment]
    rules  = preset [":" change *("," change)]  a preset (`gin_env.rules.PRESETS`) and what differs from it
    change = field "=" value                  a field of `gin_env.Rules`; a number, a word, true, false or none
    kind   = "hand" | "match"                 a record of the kind hand holds one hand
    hand   = "dealer=" seat ["scores=" number "-" number] "deck=" card *card *move ["=" result]
    move   = "p"                              pass: refuse the upcard, or lay no more
           | "d"                              draw the top card of the stock
           | "t"                              take the top card of the discard pile
           | card                             discard it
           | "k" card                         knock (or go gin), discarding it
           | "G"                              big gin
           | "m" card card card [card [card]] lay a meld
           | card ">" ("1" | "2" | "3")       lay it off on the knocker's first, second or third meld
    result = ["seat" seat "+" number] ending  who won how many points; without it nobody won
    ending = "knock" | "gin" | "big-gin" | "undercut" | "tie" | "dead" | "truncated"
    card   = rank suit, as in 7S: a rank of A23456789TJQK and a suit of SHDC
    seat   = "0" | "1"

No word has a space within (the words of a hand are ``dealer=0``, ``deck=8C...``, each move, ``=`` and those of the
result), and case counts. What the words mean:

- ``deck`` is the whole pack in the order of the deal: one card each in turn, the non-dealer first, then the upcard,
  then the stock from its top. So a drawn card need not be written down.
- Moves follow each other in order, whoever makes them: the rules say whose turn it is.
- ``scores`` are the points of seat 0 and seat 1 before the hand, in a match. The first hand has them where the record
  takes up a match in the middle, with any dealer; without them the match begins, at 0-0 and with the dealer that the
  rules name, if they do. In later hands scores and dealer follow, and are there to be checked.
- A hand that stops before its end is a position. In a match only the last hand may stop.
- A result says what follows from the moves, for people; a reader may check it, and `gin_env.engine.replay` does.

A file of records has one on each line; lines that are empty or start with ``#`` are skipped.

This module reads and writes records; it knows nothing of what is legal. `gin_env.engine.replay` plays them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, LAYOFF, MELD, MELDS, NUM_MANUAL_ACTIONS, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, card_name, from_mask
from gin_env.rules import Rules, as_rules
from gin_env.tables import ENDINGS, NOBODY, OVER, PLAYING, Tables

VERSION = "gin1"


class RecordError(ValueError):
    """A record that cannot be read, or whose moves cannot be played."""


# ------------------------------------------------------------------------------------------------------------ moves


def _write_move(action: int) -> str:
    words = {PASS: "p", DRAW: "d", TAKE: "t", BIG_GIN: "G"}
    if action in words:
        return words[action]
    if action < KNOCK:
        return card_name(action - DISCARD)
    if action < BIG_GIN:
        return "k" + card_name(action - KNOCK)
    if action < LAYOFF:
        return "m" + _write_cards(from_mask(int(MELDS[action - MELD])))
    meld, card = divmod(action - LAYOFF, NUM_CARDS)
    return f"{card_name(card)}>{meld + 1}"


def _write_cards(cards: Iterable[int]) -> str:
    return "".join(card_name(card) for card in cards)


_MOVES = tuple(_write_move(action) for action in range(NUM_MANUAL_ACTIONS))
_ACTIONS = {text: action for action, text in enumerate(_MOVES)}
_CARDS = {card_name(card): card for card in range(NUM_CARDS)}


def move_text(action: int) -> str:
    """Returns the word that stands for an action in a record, such as ``k7S``.

    Raises:
        ValueError: If the action is not one of the table (`gin_env.actions`).
    """
    if not 0 <= action < NUM_MANUAL_ACTIONS:
        raise ValueError(f"action {action} is not one of 0 to {NUM_MANUAL_ACTIONS - 1}")
    return _MOVES[action]


def parse_move(text: str) -> int:
    """Returns the action that a word of a record stands for; the cards of a meld may have any order.

    Raises:
        RecordError: If it stands for none.
    """
    if text in _ACTIONS:
        return _ACTIONS[text]
    if text.startswith("m"):
        cards = _split_cards(text[1:])
        unknown = [card for card in cards if card not in _CARDS]
        if unknown:
            raise RecordError(f"{text!r} is no meld: {unknown[0]!r} is no card")
        meld = "m" + _write_cards(sorted(_CARDS[card] for card in cards))
        if meld in _ACTIONS:
            return _ACTIONS[meld]
        raise RecordError(f"{text!r} is no meld: expected a set of 3 or 4 cards or a run of 3 to 5")
    raise RecordError(
        f"{text!r} is no move: expected p, d, t, G, a card such as 7S, kCARD, mCARDS or CARD>1 (to CARD>3)"
    )


def _split_cards(text: str) -> list[str]:
    return [text[place : place + 2] for place in range(0, len(text), 2)]


# ---------------------------------------------------------------------------------------------------------- records


class Outcome(NamedTuple):
    """How a hand ended.

    Attributes:
        ending: One of `gin_env.tables.ENDINGS`, but ``"playing"``.
        winner: Seat, or None.
        points: Won by the winner.
    """

    ending: str
    winner: int | None
    points: int

    def text(self) -> str:
        """Returns it as in a record, such as ``seat 0 +31 gin``."""
        return self.ending if self.winner is None else f"seat {self.winner} +{self.points} {self.ending}"


@dataclass(frozen=True)
class HandRecord:
    """One hand, or the beginning of one.

    Attributes:
        dealer: Seat.
        deck: Card ids in the order of the deal: alternately to the non-dealer and the dealer, then the upcard, then
            the stock from its top.
        moves: Action ids in order.
        scores: Match points by seat before the hand; None where they follow from the hands before, and outside a match.
        result: How it ended, or None: it has not, or nobody has written it down.
    """

    dealer: int
    deck: tuple[int, ...]
    moves: tuple[int, ...] = ()
    scores: tuple[int, int] | None = None
    result: Outcome | None = None

    def text(self) -> str:
        """Returns the hand as in a record."""
        words = [f"dealer={self.dealer}"]
        if self.scores is not None:
            words.append(f"scores={self.scores[0]}-{self.scores[1]}")
        words.append("deck=" + _write_cards(self.deck))
        words += [_MOVES[move] for move in self.moves]
        if self.result is not None:
            words.append("= " + self.result.text())
        return " ".join(words)


@dataclass(frozen=True)
class Record:
    """A hand or a match, as one line of text (`line`, `parse_record`).

    Attributes:
        rules: What is played.
        match: Whether the hands go on to the rules' target.
        hands: One hand, or those of a match in order.
        comment: Anything on one line; no part of comparisons.

    Raises:
        RecordError: If the parts do not fit together: a deck that is no order of the pack, say.
    """

    rules: Rules
    match: bool
    hands: tuple[HandRecord, ...]
    comment: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Checks what can be seen without playing."""
        if not self.hands:
            raise RecordError("there is no hand")
        if len(self.hands) > 1 and not self.match:
            raise RecordError(f"there are {len(self.hands)} hands; a record of the kind 'hand' holds one")
        if len(self.comment.splitlines()) > 1:
            raise RecordError("a comment is one line")
        pack = from_mask(self.rules.pack)
        for number, hand in enumerate(self.hands, 1):
            try:
                self._check(hand, pack)
            except RecordError as error:
                raise RecordError(f"hand {number}: {error}") from None

    def _check(self, hand: HandRecord, pack: list[int]) -> None:
        if hand.dealer not in (0, 1):
            raise RecordError(f"dealer is {hand.dealer}; expected 0 or 1")
        if sorted(hand.deck) != pack:
            raise RecordError(_what_is_wrong(hand.deck, pack))
        for place, move in enumerate(hand.moves, 1):
            if not 0 <= move < self.rules.num_actions:
                named = f"{_MOVES[move]!r}" if 0 <= move < NUM_MANUAL_ACTIONS else f"action {move}"
                raise RecordError(f"move {place}: {named} does not exist under these rules")
        if hand.scores is not None:
            if not self.match:
                raise RecordError("scores are for a match only")
            # Without a target the first points end the match.
            target = self.rules.target or 1
            if min(hand.scores) < 0 or max(hand.scores) >= target:
                raise RecordError(
                    f"scores are {hand.scores[0]}-{hand.scores[1]}; a match that goes on has 0 to {target - 1}"
                )

    def line(self) -> str:
        """Returns the record as one line of text, without the end of the line."""
        hands = " / ".join(hand.text() for hand in self.hands)
        comment = f" # {self.comment}" if self.comment else ""
        return f"{VERSION} {self.rules.text} {'match' if self.match else 'hand'} {hands}{comment}"


def _what_is_wrong(deck: tuple[int, ...], pack: list[int]) -> str:
    """Says why a deck is no order of the pack."""
    for place, card in enumerate(deck, 1):
        if card not in pack:
            named = card_name(card) if 0 <= card < NUM_CARDS else f"card id {card}"
            return f"deck: card {place}, {named}, is not in the pack"
        if card in deck[: place - 1]:
            return f"deck: card {place}, {card_name(card)}, is there twice"
    return f"deck has {len(deck)} cards; expected the {len(pack)} of the pack"


# ---------------------------------------------------------------------------------------------------------- reading


def parse_record(text: str) -> Record:
    """Returns the record that a line holds.

    Raises:
        RecordError: If it holds none; the message says what is wrong and where.
    """
    lines = text.strip().splitlines()
    if len(lines) != 1:
        raise RecordError(f"a record is one line, but these are {len(lines)}")
    body, _, comment = lines[0].partition("#")
    words = body.split()
    if words[:1] != [VERSION]:
        raise RecordError(f"it starts with {words[0] if words else ''!r}; expected the version {VERSION!r}")
    if len(words) < 3:
        raise RecordError(
            f"it ends after {words[-1]!r}; expected '{VERSION} RULES hand ...' or '{VERSION} RULES match ...'"
        )
    # A record is text from anywhere: it may not make us read a file.
    if words[1].endswith(".toml"):
        raise RecordError(f"rules {words[1]!r} are a file's name; expected a preset, with or without changes")
    try:
        rules = as_rules(words[1])
    except ValueError as error:
        raise RecordError(str(error)) from None
    if words[2] not in ("hand", "match"):
        raise RecordError(f"its kind is {words[2]!r}; expected 'hand' or 'match'")
    hands = []
    for number, part in enumerate(_split(words[3:], "/"), 1):
        try:
            hands.append(_parse_hand(part))
        except RecordError as error:
            raise RecordError(f"hand {number}: {error}") from None
    return Record(rules, words[2] == "match", tuple(hands), comment.strip())


def is_record(line: str) -> bool:
    """Whether a line of a file is to be read as a record: it is neither empty nor a comment."""
    return line.strip() != "" and not line.lstrip().startswith("#")


def read_records(lines: Iterable[str]) -> Iterator[tuple[int, Record]]:
    """Yields the records of a file with their line numbers, from 1; skips empty lines and comments.

    Args:
        lines: Of the file; an open file will do.

    Raises:
        RecordError: At the first line that holds no record, which the message names.
    """
    for number, line in enumerate(lines, 1):
        if is_record(line):
            try:
                yield number, parse_record(line)
            except RecordError as error:
                raise RecordError(f"line {number}: {error}") from None


def _split(words: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == separator:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _parse_hand(words: list[str]) -> HandRecord:
    fields: dict[str, str] = {}
    start = 0
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or word == "=":
            break
        if name not in ("dealer", "scores", "deck") or name in fields:
            raise RecordError(f"{word!r} is {'there twice' if name in fields else 'unknown'}")
        fields[name] = value
        start += 1
    for name in ("dealer", "deck"):
        if name not in fields:
            raise RecordError(f"{name}= is missing before {words[start]!r}" if words[start:] else f"{name}= is missing")
    if fields["dealer"] not in ("0", "1"):
        raise RecordError(f"dealer is {fields['dealer']!r}; expected 0 or 1")
    played, *results = _split(words[start:], "=")
    if len(results) > 1:
        raise RecordError("it has two results")
    moves = []
    for place, word in enumerate(played, 1):
        try:
            moves.append(parse_move(word))
        except RecordError as error:
            raise RecordError(f"move {place}: {error}") from None
    return HandRecord(
        dealer=int(fields["dealer"]),
        deck=_parse_deck(fields["deck"]),
        moves=tuple(moves),
        scores=_parse_scores(fields["scores"]) if "scores" in fields else None,
        result=_parse_result(results[0]) if results else None,
    )


def _parse_deck(text: str) -> tuple[int, ...]:
    cards = _split_cards(text)
    for place, card in enumerate(cards, 1):
        if card not in _CARDS:
            raise RecordError(f"deck: card {place} is {card!r}; expected a rank and a suit, such as 7S")
    return tuple(_CARDS[card] for card in cards)


def _parse_scores(text: str) -> tuple[int, int]:
    first, dash, second = text.partition("-")
    if not (dash and _is_number(first) and _is_number(second)):
        raise RecordError(f"scores are {text!r}; expected two numbers, such as 12-30")
    return int(first), int(second)


def _parse_result(words: list[str]) -> Outcome:
    if len(words) == 1 and words[0] in ENDINGS[1:]:
        return Outcome(words[0], None, 0)
    if len(words) == 4 and words[0] == "seat" and words[1] in ("0", "1") and words[3] in ENDINGS[1:]:
        if words[2].startswith("+") and _is_number(words[2][1:]):
            return Outcome(words[3], int(words[1]), int(words[2][1:]))
    raise RecordError(
        f"result is {' '.join(words)!r}; expected one of {', '.join(ENDINGS[1:])}; before it 'seat 0 +POINTS', where a "
        "seat won"
    )


def _is_number(text: str) -> bool:
    # No other digits than these, and no more than any score has.
    return text.isascii() and text.isdigit() and len(text) < 10


# ------------------------------------------------------------------------------------------------ records of tables


def outcome(tables: Tables, row: int = 0) -> Outcome | None:
    """Returns how the last hand that ended at a table went, or None before the first."""
    t = tables[row]
    if t["ending"] == PLAYING:
        return None
    winner = int(t["winner"])
    return Outcome(ENDINGS[t["ending"]], None if winner == NOBODY else winner, int(t["points"]))


def hand_record(tables: Tables, row: int = 0) -> HandRecord:
    """Returns the hand at a table as far as it was played: the running one, or the one that has just ended.

    A hand of a match comes with the scores before it. After a step with ``redeal=True`` the hand is the next one.

    Raises:
        ValueError: If nothing has been dealt.
    """
    t = tables[row]
    deck = t["deck"][: int(t["rules"]["deck_size"])].tolist()
    if NO_CARD in deck:
        raise ValueError(f"nothing has been dealt at table {row}")
    result = outcome(tables, row) if t["phase"] == OVER else None
    scores = None
    if t["to_target"]:
        scores = t["scores"].tolist()
        if result is not None and result.winner is not None:
            scores[result.winner] -= result.points
    return HandRecord(
        dealer=int(t["dealer"]),
        deck=tuple(deck),
        moves=tuple(t["moves"][: int(t["num_moves"])].tolist()),
        scores=None if scores is None else (scores[0], scores[1]),
        result=result,
    )


def table_record(tables: Tables, row: int = 0) -> Record:
    """Returns the record of one table: its rules and its hand (`hand_record`).

    Replaying it gives the table back, as far as the players can tell; of a match the hands before are gone, but for the
    scores.

    Raises:
        ValueError: If nothing has been dealt.
    """
    rules = Rules.from_row(tables["rules"][row])
    return Record(rules, bool(tables["to_target"][row]), (hand_record(tables, row),))
