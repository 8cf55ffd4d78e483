"""Hosts a player that was written for the framework of the EAAI 2021 gin rummy challenge.

A bot ported from Java implements `GinRummyPlayer`, whose methods have the names and meanings they have there, and is
handed to `Shim`, which speaks the line protocol of docs/guide/external.md for it. `Simple` is an example:

    ginrummy match "external:python -m experiments.examples.eaai_shim" greedy --rules eaai --match

Only the standard library is needed: the file may be copied.
"""

# The methods have the names that they have in the framework, and are described at `GinRummyPlayer`.
# ruff: noqa: D102, N802

import random
import sys
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple, TextIO

RANKS, SUITS = "A23456789TJQK", "CHSD"


class Card(NamedTuple):
    """A card, numbered as in the framework: rank 0 (ace) to 12, suit 0 to 3 in the order C H S D."""

    suit: int
    rank: int

    @classmethod
    def read(cls, text: str) -> "Card":
        """Reads a card such as ``TD``."""
        return cls(SUITS.index(text[1]), RANKS.index(text[0]))

    def __str__(self) -> str:
        return RANKS[self.rank] + SUITS[self.suit]


Cards = list[Card]


class GinRummyPlayer:
    """What the framework asks of a player and tells it. Players are numbered 0 and 1; a "game" is a hand."""

    def startGame(self, player: int, starter: int, cards: Cards) -> None:
        """A hand begins: one's number, who begins, and one's ten cards."""

    def willDrawFaceUpCard(self, card: Card) -> bool:
        """Whether to draw the face-up card."""
        raise NotImplementedError

    def reportDraw(self, player: int, card: Card | None) -> None:
        """A player has drawn; None stands for a card that one cannot see."""

    def getDiscard(self) -> Card:
        """The card to throw."""
        raise NotImplementedError

    def reportDiscard(self, player: int, card: Card) -> None:
        """A player has thrown a card."""

    def getFinalMelds(self) -> list[Cards] | None:
        """One's melds: after an own throw to knock with (None: do not), or after the opponent has knocked."""
        raise NotImplementedError

    def reportFinalMelds(self, player: int, melds: list[Cards]) -> None:
        """A player has laid its melds."""

    def reportLayoff(self, player: int, card: Card, meld: Cards) -> None:
        """A player has laid off a card on a meld of the other."""

    def reportScores(self, scores: list[int]) -> None:
        """The points of both after a hand."""

    def reportFinalHand(self, player: int, cards: Cards) -> None:
        """What a player had in hand at the end."""


class Shim:
    """Turns the lines of the protocol into calls of a player, and what it returns into answers.

    Args:
        player: The player.
        name: What it is called, one word.
        answers: Where to write.
    """

    def __init__(self, player: GinRummyPlayer, name: str, answers: TextIO = sys.stdout) -> None:
        self.player, self.name, self.answers = player, name, answers
        self.seat = self.starter = 0
        self.face_up: Card | None = None
        self.melds: list[Cards] | None = None  # one's own, once the player has named them
        self.table: list[Cards] = []  # the knocker's

    def run(self, lines: Iterable[str]) -> None:
        """Plays until the lines end."""
        for line in lines:
            word, *words = line.split() or [""]
            handle = getattr(self, "_on_" + word.replace("-", "_"), None)
            if handle is not None:  # other lines are of no use here
                handle(words)

    def _answer(self, text: str) -> None:
        print(text, file=self.answers, flush=True)

    def _on_protocol(self, words: list[str]) -> None:
        self._answer(f"ready 1 {self.name}")

    def _on_key(self, words: list[str]) -> None:
        random.seed(int(words[0]))  # so that the player's choices come out the same again

    def _on_game(self, words: list[str]) -> None:
        self.seat = int(words[2])

    def _on_hand(self, words: list[str]) -> None:
        self.starter = 1 - int(words[2])
        self.melds, self.table = None, []

    def _on_cards(self, words: list[str]) -> None:
        self.player.startGame(self.seat, self.starter, [Card.read(word) for word in words])

    def _on_upcard(self, words: list[str]) -> None:
        self.face_up = Card.read(words[0])

    def _on_move(self, words: list[str]) -> None:
        player, move = int(words[0]), words[1]
        card = Card.read(words[2]) if words[2:] else None
        if move in ("draw", "take"):
            self.player.reportDraw(player, card)
        elif card is not None:
            self.face_up = card
            if player != self.seat:  # an own throw was reported when it was asked for
                self.player.reportDiscard(player, card)

    def _on_ask(self, words: list[str]) -> None:
        getattr(self, "_ask_" + words[0])(" ".join(words[1:]).split(" / "))

    def _ask_draw(self, answers: list[str]) -> None:
        assert self.face_up is not None
        self._answer("take" if self.player.willDrawFaceUpCard(self.face_up) else answers[0])

    def _ask_throw(self, answers: list[str]) -> None:
        card = self.player.getDiscard()
        self.player.reportDiscard(self.seat, card)
        self.melds = self.player.getFinalMelds()
        self._answer(f"{'discard' if self.melds is None else 'knock'} {card}")

    def _ask_melds(self, answers: list[str]) -> None:
        self._answer("melds " + " / ".join(" ".join(map(str, meld)) for meld in self._final_melds()))

    def _ask_layoff(self, answers: list[str]) -> None:
        # In the framework the referee lays off, after both have laid their melds.
        kept = {str(card) for meld in self._final_melds() for card in meld}
        fitting = [answer for answer in answers if answer.startswith("layoff") and answer.split()[1] not in kept]
        self._answer(fitting[0] if fitting else "pass")

    def _final_melds(self) -> list[Cards]:
        if self.melds is None:
            self.melds = self.player.getFinalMelds() or []
        return self.melds

    def _on_melds(self, words: list[str]) -> None:
        melds = [[Card.read(card) for card in meld.split()] for meld in " ".join(words[1:]).split("/")]
        self.table = self.table or melds
        self.player.reportFinalMelds(int(words[0]), [meld for meld in melds if meld])

    def _on_layoff(self, words: list[str]) -> None:
        card, meld = Card.read(words[1]), self.table[int(words[2]) - 1]
        self.player.reportLayoff(int(words[0]), card, list(meld))
        meld.append(card)

    def _on_final(self, words: list[str]) -> None:
        self.player.reportFinalHand(int(words[0]), [Card.read(word) for word in words[1:]])

    def _on_scores(self, words: list[str]) -> None:
        self.player.reportScores([int(word) for word in words])


def melds_of(cards: Iterable[Card]) -> Iterator[frozenset[Card]]:
    """Yields every meld that can be made of some cards."""
    held = sorted(cards)
    for rank in range(13):
        of_rank = [card for card in held if card.rank == rank]
        yield from map(frozenset, (meld for size in (3, 4) for meld in combinations(of_rank, size)))
    for low in held:
        for length in range(3, 11):
            run = frozenset(Card(low.suit, low.rank + step) for step in range(length))
            if not run <= set(held):
                break
            yield run


def best_melds(cards: Iterable[Card]) -> tuple[int, list[list[frozenset[Card]]]]:
    """Returns the least deadwood of some cards, and all the ways of melding that leave it."""
    held = frozenset(cards)
    melds = list(melds_of(held))
    # Some melds, the cards that they leave, and where the list goes on.
    ways: list[tuple[list[frozenset[Card]], frozenset[Card], int]] = [([], held, 0)]
    for way, rest, first in ways:  # it grows
        for number in range(first, len(melds)):
            if melds[number] <= rest:
                ways.append(([*way, melds[number]], rest - melds[number], number + 1))
    points = [sum(min(card.rank + 1, 10) for card in rest) for _, rest, _ in ways]
    least = min(points)
    return least, [way for (way, _, _), left in zip(ways, points, strict=True) if left == least]


class Simple(GinRummyPlayer):
    """Draws the face-up card for a meld only, throws for the least deadwood, and knocks as soon as it may."""

    def startGame(self, player: int, starter: int, cards: Cards) -> None:
        self.player, self.hand = player, set(cards)
        self.knocked = False  # by the opponent
        self.drawn: Card | None = None
        self.taken: Card | None = None
        self.pairs: set[frozenset[Card | None]] = set()  # drawn and thrown in one turn

    def willDrawFaceUpCard(self, card: Card) -> bool:
        self.taken = card if any(card in meld for meld in melds_of({*self.hand, card})) else None
        return self.taken is not None

    def reportDraw(self, player: int, card: Card | None) -> None:
        if player == self.player and card is not None:
            self.drawn = card
            self.hand.add(card)

    def getDiscard(self) -> Card:
        allowed = [card for card in sorted(self.hand) if not card == self.drawn == self.taken]
        fresh = [card for card in allowed if {self.drawn, card} not in self.pairs]
        left = {card: best_melds(self.hand - {card})[0] for card in fresh or allowed}
        card = random.choice([card for card in left if left[card] == min(left.values())])
        self.pairs.add(frozenset({self.drawn, card}))
        return card

    def reportDiscard(self, player: int, card: Card) -> None:
        if player == self.player:
            self.hand.remove(card)

    def getFinalMelds(self) -> list[Cards] | None:
        least, ways = best_melds(self.hand)
        return None if least > 10 and not self.knocked else [sorted(meld) for meld in random.choice(ways)]

    def reportFinalMelds(self, player: int, melds: list[Cards]) -> None:
        self.knocked = self.knocked or player != self.player


if __name__ == "__main__":
    Shim(Simple(), "simple").run(sys.stdin)
