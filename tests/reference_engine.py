"""A slow, readable reference for whole hands and matches, in plain Python.

It is written from the rules, as a card table plays them, and shares no code with `gin_env.engine`: cards are ints in
lists and sets, melds and layoffs come from `tests.reference`. Of `gin_env` it needs a `Rules` object only, as the list
of house rules that are agreed on. It plays what the engine plays: hands that are laid and defended for the players.

Moves have the numbers of the action table, so that both sides can be given the same ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gin_env.rules import Rules
from tests import reference

# The action table, written out once more.
PASS, DRAW, TAKE = 0, 1, 2
BIG_GIN = 107


def discard(card: int) -> int:
    """Returns the move that throws a card."""
    return 3 + card


def knock(card: int) -> int:
    """Returns the move that knocks, throwing a card."""
    return 55 + card


class Result(NamedTuple):
    """How a hand ended."""

    ending: str
    knocker: int | None
    winner: int | None
    points: int
    deadwood: tuple[int, int]  # by seat, after layoffs
    knocker_melds: tuple[int, ...]
    num_layoffs: int
    turns: int  # draws


class Table:
    """One table, at which one hand is played after another.

    Attributes:
        rules: The house rules.
        match: Whether scores go on to the target.
        dealer: Seat.
        mover: Seat.
        phase: "offer", "offer-dealer", "draw-stock", "draw", "throw" or "over".
        hands: The cards of each seat.
        pile: The discard pile, its top card last.
        pile_by: Who threw each card of the pile; None for the upcard.
        stock: The stock, its top card first.
        known: By seat, cards taken from the pile and still held.
        thrown: By seat, all cards thrown in this hand.
        declined: By seat, cards of the pile that could have been taken and were not.
        scores: Match points by seat.
        result: Of the last hand that ended.
        match_winner: Seat.
    """

    def __init__(self, rules: Rules, match: bool = False) -> None:
        """Prepares a table; `deal` starts a hand."""
        self.rules = rules
        self.match = match
        self.scores = [0, 0]
        self.result: Result | None = None
        self.match_winner: int | None = None
        self.moves: list[int] = []

    @property
    def pack(self) -> list[int]:
        """The cards in play."""
        return [13 * suit + rank for suit in range(self.rules.suits) for rank in range(self.rules.ranks)]

    def next_dealer(self) -> int | None:
        """Returns who deals the next hand, or None where chance or the host decides: the first of an episode."""
        if self.result is None or not self.match or self.match_winner is not None:
            return None if self.rules.first_dealer == "random" else self.rules.first_dealer
        # A hand that was not played to an end is dealt again by the same player.
        if self.result.ending in ("dead", "truncated") or self.rules.next_dealer == "same":
            return self.dealer
        if self.rules.next_dealer == "winner":
            return self.dealer if self.result.winner is None else self.result.winner
        return 1 - self.dealer

    def deal(self, deck: Sequence[int], dealer: int) -> None:
        """Deals a hand from a pack in the given order."""
        assert sorted(deck) == self.pack
        if not self.match or self.match_winner is not None:
            self.scores, self.match_winner = [0, 0], None
        self.dealer = dealer
        rest = list(deck)
        self.hands: list[set[int]] = [set(), set()]
        for _ in range(self.rules.hand_size):
            self.hands[1 - dealer].add(rest.pop(0))
            self.hands[dealer].add(rest.pop(0))
        upcard = rest.pop(0)
        self.pile = [upcard]
        self.pile_by: list[int | None] = [None]
        self.known: list[set[int]] = [set(), set()]
        self.thrown: list[set[int]] = [set(), set()]
        self.declined: list[set[int]] = [set(), set()]
        self.stock = rest
        self.taken: int | None = None
        self.drawn: int | None = None
        self.turns = 0
        self.moves = []
        self.mover = 1 - dealer
        self.phase = "offer"

        self.limit = self.rules.knock_limit
        self.doubled = False
        if self.rules.oklahoma:
            rank = upcard % 13 + 1
            self.limit = 0 if rank == 1 else min(rank, 10)
            self.doubled = self.rules.double_spades != "no" and upcard in range(13)

    def legal(self) -> list[int]:
        """Returns the moves that the player may choose from, ascending."""
        if self.phase in ("offer", "offer-dealer"):
            return [PASS, TAKE]
        if self.phase == "draw-stock":
            return [DRAW]
        if self.phase == "draw":
            return [DRAW, TAKE]
        if self.phase == "over":
            return []
        hand = self.hands[self.mover]
        free = sorted(card for card in hand if card != self.taken or self.rules.rediscard)
        left = reference.deadwood_after(reference.mask_of(hand))
        moves = [discard(card) for card in free]
        moves += [knock(card) for card in free if left[card] <= self.limit]
        if self.rules.big_gin_bonus is not None and reference.deadwood(reference.mask_of(hand)) == 0:
            moves.append(BIG_GIN)
        return moves

    def play(self, move: int) -> None:
        """Plays a move, which must be legal."""
        self.moves.append(move)
        me, other = self.mover, 1 - self.mover
        hand = self.hands[me]
        if move == PASS:
            self.declined[me].add(self.pile[-1])
            self.phase = "offer-dealer" if self.phase == "offer" else "draw-stock"
            self.mover = other
        elif move in (DRAW, TAKE):
            if move == TAKE:
                card = self.taken = self.pile.pop()
                self.pile_by.pop()
                self.known[me].add(card)
            else:
                card = self.drawn = self.stock.pop(0)
                if self.phase == "draw":
                    self.declined[me].add(self.pile[-1])
            hand.add(card)
            self.turns += 1
            self.phase = "throw"
        elif move == BIG_GIN:
            self._knock(big=True)
        else:
            knocks = move >= knock(0)
            card = move - (knock(0) if knocks else discard(0))
            hand.remove(card)
            self.known[me].discard(card)
            self.thrown[me].add(card)
            self.pile.append(card)
            self.pile_by.append(me)
            self.taken = self.drawn = None
            if knocks:
                self._knock(big=False)
            elif len(self.stock) <= self.rules.stock_floor:
                self._no_score("dead")
            elif self.turns >= self.rules.draw_cap:
                self._no_score("truncated")
            else:
                self.phase = "draw"
                self.mover = other

    def _knock(self, big: bool) -> None:
        me, other = self.mover, 1 - self.mover
        rules = self.rules
        mine, theirs = (reference.mask_of(self.hands[seat]) for seat in (me, other))
        melds = reference.best_arrangement(mine, reference.mask_of(self.pack))
        left = reference.points(reference.loose_cards(mine, melds))
        gin = big or left == 0
        defence = reference.defend(theirs, melds, gin)
        worse = defence.deadwood - left  # by so much the defender is worse off

        bonus_factor = 2 if self.doubled and rules.double_spades == "all" else 1
        points = abs(worse) * (2 if self.doubled else 1)
        winner: int | None = me
        if gin:
            ending = "big-gin" if big else "gin"
            bonus = rules.big_gin_bonus if big else rules.gin_bonus
            assert bonus is not None
            points += bonus * bonus_factor
        elif worse > 0:
            ending = "knock"
        elif worse == 0 and rules.tie == "nothing":
            ending, winner = "tie", None
        else:
            ending, winner = "undercut", other
            points += rules.undercut_bonus * bonus_factor
        deadwood = (left, defence.deadwood) if me == 0 else (defence.deadwood, left)
        self._end(Result(ending, me, winner, points, deadwood, melds, defence.layoffs, self.turns))

    def _no_score(self, ending: str) -> None:
        first, second = (reference.deadwood(reference.mask_of(hand)) for hand in self.hands)
        self._end(Result(ending, None, None, 0, (first, second), (), 0, self.turns))

    def _end(self, result: Result) -> None:
        self.phase = "over"
        self.result = result
        if result.winner is not None:
            self.scores[result.winner] += result.points
            if self.match and self.scores[result.winner] >= self.rules.target:
                self.match_winner = result.winner


def stacked_deck(
    pack: Sequence[int], non_dealer: Sequence[int], dealer: Sequence[int], then: Sequence[int]
) -> list[int]:
    """Returns an order of the pack that deals two hands, then some cards (upcard and stock), then the others."""
    dealt = [card for pair in zip(non_dealer, dealer, strict=True) for card in pair]
    first = [*dealt, *then]
    assert len(set(first)) == len(first)
    return first + [card for card in pack if card not in first]
