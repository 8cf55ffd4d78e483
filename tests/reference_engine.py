"""A slow, readable reference for whole hands and matches, in plain Python.

It is written from the rules, as a card table plays them, and shares no code with `gin_env.engine`: cards are ints in
lists and sets, melds and layoffs come from `tests.reference`. Of `gin_env` it needs a `Rules` object only, as the list
of house rules that are agreed on. It plays what the engine plays: hands that are laid and defended for the players, and
those in which the players lay their cards down themselves.

Moves have the numbers of the action table, so that both sides can be given the same ones.
"""

from collections.abc import Iterable, Sequence
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


# What can be laid in one move, in the order of the moves: for each rank the sets that lack the spade, the heart, the
# diamond and the club, and the set of four; then the runs of three, of four and of five cards.
LAYABLE = [
    reference.mask_of(13 * suit + rank for suit in range(4) if suit != missing)
    for rank in range(13)
    for missing in (0, 1, 2, 3, None)
] + [
    reference.mask_of(range(13 * suit + low, 13 * suit + low + length))
    for length in (3, 4, 5)
    for suit in range(4)
    for low in range(14 - length)
]
FIRST_MELD = 108
FIRST_LAYOFF = FIRST_MELD + len(LAYABLE)
NUM_MOVES = FIRST_LAYOFF + 3 * 52


def lay(meld: int) -> int:
    """Returns the move that lays a meld."""
    return FIRST_MELD + LAYABLE.index(meld)


def lay_off(card: int, slot: int) -> int:
    """Returns the move that lays off a card on the knocker's first (0), second or third meld."""
    return FIRST_LAYOFF + 52 * slot + card


class Result(NamedTuple):
    """How a hand ended."""

    ending: str
    knocker: int | None
    winner: int | None
    points: int
    deadwood: tuple[int, int]  # by seat, after layoffs
    knocker_melds: tuple[int, ...]  # in the order laid
    defender_melds: tuple[int, ...] | None  # None: any of those that leave as little with as few layoffs
    layoffs: tuple[int, ...] | None  # on each of the knocker's melds; None: any of the same
    num_layoffs: int
    turns: int  # draws


class Table:
    """One table, at which one hand is played after another.

    Attributes:
        rules: The house rules.
        match: Whether scores go on to the target.
        dealer: Seat.
        mover: Seat.
        phase: "offer", "offer-dealer", "draw-stock", "draw", "throw", "wall", "wall-throw", "declare", "lay-off",
            "defend" or "over".
        hands: The cards of each seat, those that lie on the table included.
        pile: The discard pile, its top card last.
        pile_by: Who threw each card of the pile; None for the upcard.
        stock: The stock, its top card first.
        known: By seat, cards that were taken from the pile, or laid down, and are still held.
        thrown: By seat, all cards thrown in this hand.
        declined: By seat, cards of the pile that could have been taken and were not.
        takes: Cards taken from the pile instead of drawn from the stock.
        swaps: How many turns in a row, up to the last one, took a card and threw it back.
        knocker: Seat, or None before the knock.
        left: The knocker's deadwood; None until its melds are laid.
        laid: By seat, the melds in the order laid.
        laid_off: The defender's cards on each of the knocker's melds.
        scores: Match points by seat.
        result: Of the last hand that ended.
        match_over: Whether the match is over.
        match_winner: Seat; None also for a match that was drawn.
    """

    def __init__(self, rules: Rules, match: bool = False) -> None:
        """Prepares a table; `deal` starts a hand."""
        self.rules = rules
        self.match = match
        self.scores = [0, 0]
        self.result: Result | None = None
        self.match_over = False
        self.match_winner: int | None = None
        self.moves: list[int] = []

    @property
    def pack(self) -> list[int]:
        """The cards in play."""
        return [13 * suit + rank for suit in range(self.rules.suits) for rank in range(self.rules.ranks)]

    def next_dealer(self) -> int | None:
        """Returns who deals the next hand, or None where chance or the host decides: the first of an episode."""
        if self.result is None or not self.match or self.match_over:
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
        if not self.match or self.match_over:
            self.scores, self.match_over, self.match_winner = [0, 0], False, None
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
        self.turns = self.takes = self.swaps = 0
        self.knocker: int | None = None
        self.left: int | None = None
        self.laid: list[list[int]] = [[], []]
        self.laid_off: list[set[int]] = [set(), set(), set()]
        self.moves = []
        self.mover = 1 - dealer
        self.phase = "offer"

        self.limit = self.rules.knock_limit
        self.doubled = False
        if self.rules.oklahoma:
            rank = upcard % 13 + 1
            self.limit = 0 if rank == 1 else min(rank, 10)
            self.doubled = self.rules.double_spades != "no" and upcard in range(13)

    # ------------------------------------------------------------------------------------------------- what is legal

    def legal(self) -> list[int]:
        """Returns the moves that the player may choose from, ascending."""
        hand = self.hands[self.mover]
        match self.phase:
            case "offer" | "offer-dealer":
                return [PASS, TAKE]
            case "draw-stock":
                return [DRAW]
            case "draw":
                return [DRAW, TAKE]
            case "throw":
                return [discard(card) for card in self._free(hand, self.taken)] + self._knocks(hand, self.taken)
            case "wall":
                top = self.pile[-1]
                return [PASS, TAKE] if self._knocks(hand | {top}, top) else [PASS]
            case "wall-throw":
                return self._knocks(hand, self.taken)
            case "declare":
                return self._declarations()
            case "lay-off":
                return [PASS, *self._layoffs()]
            case "defend":
                return [PASS, *(lay(meld) for meld in LAYABLE if set(reference.cards_of(meld)) <= self.unlaid())]
            case "over":
                return []
        raise AssertionError(self.phase)

    def unlaid(self, seat: int | None = None) -> set[int]:
        """Returns a player's cards (the mover's by default) that are neither in melds nor laid off."""
        seat = self.mover if seat is None else seat
        cards = self.hands[seat] - {card for meld in self.laid[seat] for card in reference.cards_of(meld)}
        if seat != self.knocker:
            cards -= set().union(*self.laid_off)
        return cards

    def fits(self, card: int, slot: int) -> bool:
        """Says whether a card can be laid off on one of the knocker's melds as it has grown."""
        assert self.knocker is not None
        if slot >= len(self.laid[self.knocker]):
            return False
        grown = self.laid[self.knocker][slot] | reference.mask_of(self.laid_off[slot])
        return bool(reference.FITTING[grown] >> card & 1)

    def _free(self, hand: set[int], taken: int | None) -> list[int]:
        """The cards that may be thrown."""
        return sorted(card for card in hand if card != taken or self.rules.rediscard)

    def _knocks(self, hand: set[int], taken: int | None) -> list[int]:
        """The moves that end the hand from a hand of one card too many."""
        left = reference.deadwood_after(reference.mask_of(hand))
        moves = [knock(card) for card in self._free(hand, taken) if left[card] <= self.limit]
        if self.rules.big_gin_bonus is not None and reference.deadwood(reference.mask_of(hand)) == 0:
            moves.append(BIG_GIN)
        return moves

    def _declarations(self) -> list[int]:
        """The knocker may stop within the limit, and lay only what lets it come within the limit."""
        rest = reference.mask_of(self.unlaid())
        moves = [PASS] if reference.points(rest) <= self.limit else []
        for meld in LAYABLE:
            if meld & rest == meld and reference.deadwood(rest & ~meld) <= self.limit:
                moves.append(lay(meld))
        return moves

    def _layoffs(self) -> list[int]:
        return [lay_off(card, slot) for slot in range(3) for card in sorted(self.unlaid()) if self.fits(card, slot)]

    # --------------------------------------------------------------------------------------------------------- moves

    def play(self, move: int) -> None:
        """Plays a move, which must be legal."""
        self.moves.append(move)
        if move >= FIRST_LAYOFF:
            slot, card = divmod(move - FIRST_LAYOFF, 52)
            self.laid_off[slot].add(card)
            self.known[self.mover].add(card)
        elif move >= FIRST_MELD:
            self._lay(self.mover, LAYABLE[move - FIRST_MELD])
        elif move == PASS:
            self._pass()
        elif move in (DRAW, TAKE):
            self._draw(taking=move == TAKE)
        elif move == BIG_GIN:
            self._knock(big=True)
        else:
            self._throw(move)

    def _pass(self) -> None:
        if self.phase in ("offer", "offer-dealer"):
            self.declined[self.mover].add(self.pile[-1])
            self.phase = "offer-dealer" if self.phase == "offer" else "draw-stock"
            self.mover = 1 - self.mover
        elif self.phase == "wall":
            self._no_score("dead")
        elif self.phase == "declare":
            self.left = reference.points(reference.mask_of(self.unlaid()))
            self._answer()
        elif self.phase == "lay-off" and self.rules.defender_melds == "manual":
            self.phase = "defend"
        else:
            self._settle()

    def _draw(self, taking: bool) -> None:
        hand = self.hands[self.mover]
        self.turns += 1
        if taking:
            card = self.taken = self.pile.pop()
            self.pile_by.pop()
            self.known[self.mover].add(card)
            hand.add(card)
            if self.phase == "draw":
                self.takes += 1
                if self.takes == self.rules.take_cap:
                    return self._no_score("dead")
        else:
            card = self.drawn = self.stock.pop(0)
            if self.phase == "draw":
                self.declined[self.mover].add(self.pile[-1])
            hand.add(card)
        self.phase = "wall-throw" if self.phase == "wall" else "throw"
        return None

    def _throw(self, move: int) -> None:
        me, other = self.mover, 1 - self.mover
        knocks = move >= knock(0)
        card = move - (knock(0) if knocks else discard(0))
        self.hands[me].remove(card)
        self.known[me].discard(card)
        self.thrown[me].add(card)
        self.pile.append(card)
        self.pile_by.append(me)
        self.swaps = self.swaps + 1 if card == self.taken else 0
        self.taken = self.drawn = None
        if knocks:
            self._knock(big=False)
        elif self.swaps == self.rules.swap_cap:
            self._no_score("dead")
        elif len(self.stock) <= self.rules.stock_floor:
            if self.rules.wall == "dead":
                self._no_score("dead")
            else:
                self.phase = "wall"
                self.mover = other
        elif self.turns >= self.rules.draw_cap:
            self._no_score("truncated")
        else:
            self.phase = "draw"
            self.mover = other

    # --------------------------------------------------------------------------------------- from the knock to the end

    def _lay(self, seat: int, meld: int) -> None:
        self.laid[seat].append(meld)
        self.known[seat] |= set(reference.cards_of(meld))

    def _knock(self, big: bool) -> None:
        self.knocker = self.mover
        # How eleven melded cards are laid is no matter, so nobody is asked.
        if self.rules.knocker_melds == "manual" and not big:
            self.phase = "declare"
            return
        mine = reference.mask_of(self.hands[self.knocker])
        self.laid[self.knocker] = list(reference.best_arrangement(mine, reference.mask_of(self.pack)))
        self.left = reference.points(reference.mask_of(self.unlaid(self.knocker)))
        self._answer()

    def _ending(self) -> str:
        """What the knocker has declared."""
        assert self.knocker is not None
        if len(self.hands[self.knocker]) > self.rules.hand_size:
            return "big-gin"
        return "gin" if self.left == 0 else "knock"

    def _answer(self) -> None:
        """The knocker's melds are on the table, and where players lay their own cards all of its hand."""
        assert self.knocker is not None
        rules = self.rules
        if "manual" in (rules.knocker_melds, rules.layoffs, rules.defender_melds):
            self.known[self.knocker] = set(self.hands[self.knocker])
            self.taken = self.drawn = None
            self.mover = 1 - self.knocker
        if rules.layoffs == "manual" and self._ending() == "knock":
            self.phase = "lay-off"
        elif rules.defender_melds == "manual":
            self.phase = "defend"
        else:
            self._settle()

    def _settle(self) -> None:
        me = self.knocker
        assert me is not None
        assert self.left is not None
        other, rules, ending = 1 - me, self.rules, self._ending()
        melds = tuple(self.laid[me])
        defender_melds: tuple[int, ...] | None = None
        layoffs: tuple[int, ...] | None = None
        if rules.layoffs == "best":
            defence = reference.defend(reference.mask_of(self.hands[other]), melds, ending != "knock")
            deadwood, num_layoffs = defence.deadwood, defence.layoffs
        else:
            if rules.defender_melds == "auto":
                rest = reference.mask_of(self.unlaid(other))
                self.laid[other] = list(reference.best_arrangement(rest, reference.mask_of(self.pack)))
            if rules.layoffs == "ascending" and ending == "knock":
                self._lay_off_ascending(other)
            defender_melds = tuple(self.laid[other])
            layoffs = tuple(reference.mask_of(cards) for cards in self.laid_off[: len(melds)])
            deadwood, num_layoffs = (
                reference.points(reference.mask_of(self.unlaid(other))),
                sum(map(len, self.laid_off)),
            )
        self._score(ending, melds, defender_melds, layoffs, deadwood, num_layoffs)

    def _lay_off_ascending(self, seat: int) -> None:
        while True:
            places = ((card, slot) for card in sorted(self.unlaid(seat)) for slot in range(3) if self.fits(card, slot))
            card, slot = next(places, (None, None))
            if card is None or slot is None:
                return
            self.laid_off[slot].add(card)

    def _score(
        self,
        ending: str,
        melds: tuple[int, ...],
        defender_melds: tuple[int, ...] | None,
        layoffs: tuple[int, ...] | None,
        deadwood: int,
        num_layoffs: int,
    ) -> None:
        me, left, rules = self.knocker, self.left, self.rules
        assert me is not None
        assert left is not None
        worse = deadwood - left  # by so much the defender is worse off
        bonus_factor = 2 if self.doubled and rules.double_spades == "all" else 1
        points = abs(worse) * (2 if self.doubled else 1)
        winner: int | None = me
        if ending != "knock":
            bonus = rules.big_gin_bonus if ending == "big-gin" else rules.gin_bonus
            assert bonus is not None
            points += bonus * bonus_factor
        elif worse == 0 and rules.tie == "nothing":
            ending, winner = "tie", None
        elif worse <= 0:
            ending, winner = "undercut", 1 - me
            points += rules.undercut_bonus * bonus_factor
        by_seat = (left, deadwood) if me == 0 else (deadwood, left)
        self._end(Result(ending, me, winner, points, by_seat, melds, defender_melds, layoffs, num_layoffs, self.turns))

    def _no_score(self, ending: str) -> None:
        first, second = (reference.deadwood(reference.mask_of(hand)) for hand in self.hands)
        self._end(Result(ending, None, None, 0, (first, second), (), None, (), 0, self.turns))

    def _end(self, result: Result) -> None:
        self.phase = "over"
        self.result = result
        if result.winner is not None:
            self.scores[result.winner] += result.points
        if not self.match:
            return
        target = self.rules.target
        if target is None:
            # One hand, if it was played to an end; who wins it wins the match, and a tie is a draw.
            self.match_over = result.ending not in ("dead", "truncated")
            self.match_winner = result.winner
        elif result.winner is not None and self.scores[result.winner] >= target:
            self.match_over, self.match_winner = True, result.winner


def stacked_deck(
    pack: Sequence[int], non_dealer: Sequence[int], dealer: Sequence[int], then: Iterable[int]
) -> list[int]:
    """Returns an order of the pack that deals two hands, then some cards (upcard and stock), then the others."""
    dealt = [card for pair in zip(non_dealer, dealer, strict=True) for card in pair]
    first = [*dealt, *then]
    assert len(set(first)) == len(first)
    return first + [card for card in pack if card not in first]
