"""Records of Rummy40: one line of text holds a hand or a match, down to the last move.

    rummy1 rummy40:opening=0 hand dealer=0 deck=8CJKAS... d m7S8SJK 7D t 9S>h TD JK8H>l 2C 8D<s ... = out 0-43 # so

A line is words separated by spaces, as those of gin are (`gin_env.record`):

    line   = "rummy1" rules kind hand *("/" hand) ["#" comment]
    rules  = preset [":" change *("," change)]  a preset (`gin_env.rummy40.rules.PRESETS`) and what differs from it
    kind   = "hand" | "match"
    hand   = "dealer=" seat ["scores=" numbers] "deck=" card *card *move ["=" result]
    move   = "d"                              draw the top card of the stock
           | "t"                              take the top card of the discard pile
           | "b"                              take back the melds that do not reach the minimum
           | card                             discard it
           | "m" card card card [card [card]] lay a meld, a joker in its place
           | card ">" ("s" | "l" | "h") [which]  add it to a set, or at the low or the high end of a run
           | "JK" card ">" ("s" | "l" | "h") [which]  add a joker there, as the card
           | card "<" ("s" | "l" | "r") [which]  put it in the place of a joker, which is stolen: that of a set, the
                                                 lowest card of a run, or another one of a run
    which  = "2" | "3"                        the second or third such meld, in the order laid
    result = ("out" | "stock") numbers | "truncated"  the penalties by seat
    numbers = number *("-" number)            one for each seat
    card   = rank suit | "JK"                 as in 7S: a rank of A23456789TJQK and a suit of SHDC; or a joker
    seat   = "0" | "1" | "2" | "3"

What the words mean is as in records of gin: ``deck`` is the whole pack in the order of the deal (one card each in turn,
the player after the dealer first), so a drawn card need not be written down; ``scores`` are the points before the hand,
in a match; a result says what follows from the moves, and `gin_env.rummy40.engine.replay` checks it.

This module reads and writes records; it knows nothing of what is legal.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.record import RecordError, is_record
from gin_env.rummy40.actions import (
    BLOCKS,
    DISCARD,
    DRAW,
    LAY,
    MELDS,
    NUM_TWO_PACK_ACTIONS,
    PLACE,
    PLACES,
    TAKE,
    TAKE_BACK,
    meld_of,
)
from gin_env.rummy40.cards import JOKER_NAME, NUM_KINDS, card_name
from gin_env.rummy40.rules import Rummy40Rules, as_rules
from gin_env.rummy40.tables import ENDINGS, OVER, PLAYING, TRUNCATED, Tables

__all__ = [
    "HandRecord",
    "Outcome",
    "Record",
    "RecordError",
    "hand_record",
    "is_record",
    "move_text",
    "outcome",
    "parse_move",
    "parse_record",
    "read_records",
    "table_record",
]

VERSION = "rummy1"

# ------------------------------------------------------------------------------------------------------------ moves


def _write_move(action: int) -> str:
    words = {DRAW: "d", TAKE: "t", TAKE_BACK: "b"}
    if action in words:
        return words[action]
    if action < LAY:
        return card_name(action - DISCARD)
    if action < PLACE:
        return "m" + _write_cards(MELDS[action - LAY].cards)
    block, card = divmod(action - PLACE, NUM_CARDS)
    place, which = BLOCKS[block]
    verb, where, _, _ = PLACES[place]
    joker = JOKER_NAME if verb == "joker" else ""
    return f"{joker}{card_name(card)}{'<' if verb == 'steal' else '>'}{where[0]}{which + 1 if which else ''}"


def _write_cards(cards: Iterable[int]) -> str:
    return "".join(card_name(card) for card in cards)


_MOVES = tuple(_write_move(action) for action in range(NUM_TWO_PACK_ACTIONS))
_ACTIONS = {text: action for action, text in enumerate(_MOVES)}
_CARDS = {card_name(card): card for card in range(NUM_KINDS)}


def move_text(action: int) -> str:
    """Returns the word that stands for an action in a record, such as ``m7S8SJK``.

    Raises:
        ValueError: If the action is not one of the table (`gin_env.rummy40.actions`).
    """
    if not 0 <= action < NUM_TWO_PACK_ACTIONS:
        raise ValueError(f"action {action} is not one of 0 to {NUM_TWO_PACK_ACTIONS - 1}")
    return _MOVES[action]


def parse_move(text: str) -> int:
    """Returns the action that a word of a record stands for; the cards of a set may have any order.

    Raises:
        RecordError: If it stands for none.
    """
    if text in _ACTIONS:
        return _ACTIONS[text]
    if text.startswith("m"):
        names = _split_cards(text[1:])
        unknown = [name for name in names if name not in _CARDS]
        if unknown:
            raise RecordError(f"{text!r} is no meld: {unknown[0]!r} is no card")
        meld = meld_of([_CARDS[name] for name in names])
        if meld is not None:
            return LAY + meld
        raise RecordError(
            f"{text!r} is no meld: expected a set of 3 or 4 cards or a run of 3 to 5, with one joker at most"
        )
    raise RecordError(
        f"{text!r} is no move: expected d, t, b, a card such as 7S or JK, mCARDS, CARD>s, CARD>l, CARD>h, JKCARD>s (or "
        "l, h), CARD<s, CARD<l or CARD<r"
    )


def _split_cards(text: str) -> list[str]:
    return [text[place : place + 2] for place in range(0, len(text), 2)]


# ---------------------------------------------------------------------------------------------------------- records


def _numbers_text(numbers: Iterable[int]) -> str:
    return "-".join(map(str, numbers))


class Outcome(NamedTuple):
    """How a hand ended.

    Attributes:
        ending: One of `gin_env.rummy40.tables.ENDINGS`, but ``"playing"``.
        penalties: Points by seat; of a truncated hand none.
    """

    ending: str
    penalties: tuple[int, ...] = ()

    def text(self) -> str:
        """Returns it as in a record, such as ``out 0-31``."""
        return f"{self.ending} {_numbers_text(self.penalties)}" if self.penalties else self.ending


@dataclass(frozen=True)
class HandRecord:
    """One hand, or the beginning of one.

    Attributes:
        dealer: Seat.
        deck: Card ids in the order of the deal: one each in turn from the player after the dealer on, then the card
            turned up, then the stock from its top.
        moves: Action ids in order.
        scores: Match points by seat before the hand; None where they follow from the hands before, and outside a match.
        result: How it ended, or None: it has not, or nobody has written it down.
    """

    dealer: int
    deck: tuple[int, ...]
    moves: tuple[int, ...] = ()
    scores: tuple[int, ...] | None = None
    result: Outcome | None = None

    def text(self) -> str:
        """Returns the hand as in a record."""
        words = [f"dealer={self.dealer}"]
        if self.scores is not None:
            words.append("scores=" + _numbers_text(self.scores))
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
        match: Whether the hands go on to the rules' limit.
        hands: One hand, or those of a match in order.
        comment: Anything on one line; no part of comparisons.

    Raises:
        RecordError: If the parts do not fit together: a deck that is no order of the cards in play, say.
    """

    rules: Rummy40Rules
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
        for number, hand in enumerate(self.hands, 1):
            try:
                self._check(hand)
            except RecordError as error:
                raise RecordError(f"hand {number}: {error}") from None

    def _check(self, hand: HandRecord) -> None:
        seats, num_actions = self.rules.seats, self.rules.num_actions
        if not 0 <= hand.dealer < seats:
            raise RecordError(f"dealer is {hand.dealer}; expected 0 to {seats - 1}")
        if sorted(hand.deck) != self.rules.deck:
            raise RecordError(_what_is_wrong(hand.deck, self.rules.deck))
        for place, move in enumerate(hand.moves, 1):
            if not 0 <= move < num_actions:
                named = f"{_MOVES[move]!r}" if 0 <= move < NUM_TWO_PACK_ACTIONS else f"action {move}"
                raise RecordError(f"move {place}: {named} does not exist under these rules")
        if hand.scores is not None:
            if not self.match:
                raise RecordError("scores are for a match only")
            if len(hand.scores) != seats or min(hand.scores) < 0:
                raise RecordError(f"scores are {_numbers_text(hand.scores)}; expected {seats} numbers")
        if hand.result is not None and hand.result.penalties and len(hand.result.penalties) != seats:
            raise RecordError(f"result is {hand.result.text()!r}; expected {seats} numbers")

    def line(self) -> str:
        """Returns the record as one line of text, without the end of the line."""
        hands = " / ".join(hand.text() for hand in self.hands)
        comment = f" # {self.comment}" if self.comment else ""
        return f"{VERSION} {self.rules.text} {'match' if self.match else 'hand'} {hands}{comment}"


def _what_is_wrong(deck: tuple[int, ...], pack: list[int]) -> str:
    """Says why a deck is no order of the cards in play."""
    for place, card in enumerate(deck, 1):
        named = card_name(card) if 0 <= card < NUM_KINDS else f"card id {card}"
        if card not in pack:
            return f"deck: card {place}, {named}, is not in play"
        if deck[:place].count(card) > pack.count(card):
            return f"deck: card {place}, {named}, is there more than {pack.count(card)} times"
    return f"deck has {len(deck)} cards; expected the {len(pack)} in play"


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
    dealer = fields["dealer"]
    if not (dealer.isascii() and dealer.isdigit() and len(dealer) == 1):
        raise RecordError(f"dealer is {dealer!r}; expected a seat")
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
        dealer=int(dealer),
        deck=_parse_deck(fields["deck"]),
        moves=tuple(moves),
        scores=_parse_numbers("scores", fields["scores"]) if "scores" in fields else None,
        result=_parse_result(results[0]) if results else None,
    )


def _parse_deck(text: str) -> tuple[int, ...]:
    cards = _split_cards(text)
    for place, card in enumerate(cards, 1):
        if card not in _CARDS:
            raise RecordError(
                f"deck: card {place} is {card!r}; expected a rank and a suit, such as 7S, or {JOKER_NAME}"
            )
    return tuple(_CARDS[card] for card in cards)


def _parse_numbers(what: str, text: str) -> tuple[int, ...]:
    parts = text.split("-")
    # No other digits than these, and no more than any score has.
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise RecordError(f"{what} are {text!r}; expected a number for each seat, such as 12-30")
    return tuple(map(int, parts))


def _parse_result(words: list[str]) -> Outcome:
    if words == [ENDINGS[TRUNCATED]]:
        return Outcome(words[0])
    if len(words) == 2 and words[0] in ENDINGS[1:TRUNCATED]:
        return Outcome(words[0], _parse_numbers("penalties", words[1]))
    raise RecordError(
        f"result is {' '.join(words)!r}; expected 'out' or 'stock' and penalties, such as 'out 0-31', or 'truncated'"
    )


# ------------------------------------------------------------------------------------------------ records of tables


def outcome(tables: Tables, row: int = 0) -> Outcome | None:
    """Returns how the last hand that ended at a table went, or None before the first."""
    t = tables[row]
    if t["ending"] == PLAYING:
        return None
    if t["ending"] == TRUNCATED:
        return Outcome(ENDINGS[TRUNCATED])
    return Outcome(ENDINGS[t["ending"]], tuple(t["penalties"][: int(t["rules"]["seats"])].tolist()))


def hand_record(tables: Tables, row: int = 0) -> HandRecord:
    """Returns the hand at a table as far as it was played: the running one, or the one that has just ended.

    A hand of a match comes with the scores before it. After a step with ``redeal=True`` the hand is the next one.

    Raises:
        ValueError: If nothing has been dealt.
    """
    t = tables[row]
    seats = int(t["rules"]["seats"])
    deck = t["deck"][: int(t["rules"]["deck_size"])].tolist()
    if NO_CARD in deck:
        raise ValueError(f"nothing has been dealt at table {row}")
    result = outcome(tables, row) if t["phase"] == OVER else None
    scores = None
    if t["to_limit"]:
        scores = t["scores"][:seats].tolist()
        if result is not None and result.penalties:
            scores = [score - penalty for score, penalty in zip(scores, result.penalties, strict=True)]
    return HandRecord(
        dealer=int(t["dealer"]),
        deck=tuple(deck),
        moves=tuple(t["moves"][: int(t["num_moves"])].tolist()),
        scores=None if scores is None else tuple(scores),
        result=result,
    )


def table_record(tables: Tables, row: int = 0) -> Record:
    """Returns the record of one table: its rules and its hand (`hand_record`).

    Replaying it gives the table back, as far as the players can tell; of a match the hands before are gone, but for the
    scores.

    Raises:
        ValueError: If nothing has been dealt.
    """
    rules = Rummy40Rules.from_row(tables["rules"][row])
    return Record(rules, bool(tables["to_limit"][row]), (hand_record(tables, row),))
