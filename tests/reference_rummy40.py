"""A slow, readable reference for Rummy40, in plain Python.

It is written from the rules, as a card table plays them, and shares no code with `gin_env.rummy40`: hands are sorted
tuples of cards, melds on the table are tuples of cards with the joker where it lies. Of `gin_env` it needs a
`Rummy40Rules` object only, as the list of house rules that are agreed on.

That no move may lead into a dead end is not reasoned about here: whether a turn can still end is found by trying every
continuation. Moves have the numbers of the action table, so that both sides can be given the same ones.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from gin_env.rummy40.rules import Rummy40Rules

JOKER = 52

# The action table, written out once more.
DRAW, TAKE, TAKE_BACK = 0, 1, 2


def discard(card: int) -> int:
    """Returns the move that throws a card (a joker is 52)."""
    return 3 + card


def points(card: int) -> int:
    """Returns the points of a card that is no joker: ace 1, 2 to 10, and 10 for J, Q and K."""
    return min(card % 13 + 1, 10)


def _layable() -> list[tuple[tuple[int, ...], int | None]]:
    """What can be laid in one move, in the order of the moves: cards as they lie, and the lowest card of a run."""
    melds: list[tuple[tuple[int, ...], int | None]] = []
    for rank in range(13):
        spade, heart, diamond, club = (13 * suit + rank for suit in range(4))
        threes = [(heart, diamond, club), (spade, diamond, club), (spade, heart, club), (spade, heart, diamond)]
        pairs = [(spade, heart), (spade, diamond), (spade, club), (heart, diamond), (heart, club), (diamond, club)]
        melds += [(three, None) for three in threes]
        melds += [((spade, heart, diamond, club), None)]
        melds += [((*pair, JOKER), None) for pair in pairs]
        melds += [((*three, JOKER), None) for three in threes]
    for length in (3, 4, 5):
        for joker in (None, *range(length)):
            for suit in range(4):
                for low in range(14 - length):
                    first = 13 * suit + low
                    melds.append((tuple(JOKER if k == joker else first + k for k in range(length)), first))
    return melds


LAYABLE = _layable()
FIRST_MELD = 56
FIRST_PLACE = FIRST_MELD + len(LAYABLE)
ADD = ("add set", "add low", "add high")
JOKERS = ("joker set", "joker low", "joker high")
STEALS = ("steal set", "steal low", "steal run")
# The kinds of moves on a meld, 52 moves each: all nine, then again for a second meld, then four for a third.
BLOCKS = [
    *((kind, 0) for kind in ADD + JOKERS + STEALS),
    *((kind, 1) for kind in ADD + JOKERS + STEALS),
    *((kind, 2) for kind in (*ADD, "steal set")),
]


def at_place(kind: str, card: int, which: int = 0) -> int:
    """Returns the move that puts a card, or a joker as the card, into a place on the table."""
    return FIRST_PLACE + 52 * BLOCKS.index((kind, which)) + card


def lay(cards: Sequence[int]) -> int:
    """Returns the move that lays these cards, in the order of `LAYABLE`."""
    return FIRST_MELD + [laid for laid, _ in LAYABLE].index(tuple(cards))


class Meld(NamedTuple):
    """A meld on the table: the cards of a run from the lowest to the highest, those of a set by suit, a joker last."""

    owner: int
    cards: tuple[int, ...]
    first: int | None  # the lowest card of a run, also where a joker lies; None for a set

    def stands(self, pack: Sequence[int]) -> list[int]:
        """Returns the cards that its joker may stand for."""
        if JOKER not in self.cards:
            return []
        if self.first is not None:
            return [self.first + self.cards.index(JOKER)]
        return [card for card in pack if card % 13 == self.cards[0] % 13 and card not in self.cards]

    def places(self, pack: Sequence[int]) -> dict[str, list[int]]:
        """Returns for each kind of place the cards that have one in this meld."""
        found: dict[str, list[int]] = {}
        if self.first is None:
            missing = [card for card in pack if card % 13 == self.cards[0] % 13 and card not in self.cards]
            # With a joker there is one suit more than is missing.
            if len(missing) > (JOKER in self.cards):
                found["add set"] = missing
            if JOKER in self.cards:
                found["steal set"] = missing
            elif missing:
                found["joker set"] = missing
            return found
        ends = {"low": self.first - 1, "high": self.first + len(self.cards)}
        for end, card in ends.items():
            if card in pack and card // 13 == self.first // 13:
                found[f"add {end}"] = [card]
                if JOKER not in self.cards:
                    found[f"joker {end}"] = [card]
        if JOKER in self.cards:
            found["steal low" if self.cards[0] == JOKER else "steal run"] = self.stands(pack)
        return found

    def grown(self, kind: str, card: int) -> "Meld":
        """Returns the meld with a card, or a joker as the card, in a place of it."""
        verb, where = kind.split()
        new = JOKER if verb == "joker" else card
        if self.first is None:
            cards = (*self.cards, new)
            if verb == "steal":
                cards = (*(c for c in self.cards if c != JOKER), new)
            return self._replace(cards=tuple(sorted(cards)))
        if verb == "steal":
            return self._replace(cards=tuple(card if c == JOKER else c for c in self.cards))
        if where == "low":
            return self._replace(cards=(new, *self.cards), first=self.first - 1)
        return self._replace(cards=(*self.cards, new))


class Turn(NamedTuple):
    """What a turn can change before its discard."""

    hand: tuple[int, ...]  # sorted
    melds: tuple[Meld, ...]  # on the table, in the order laid
    opened: bool
    laid: int  # points of the melds laid in this turn while the minimum is not reached
    attempt: int  # number of those melds
    owed: int  # stolen jokers without a place
    banned: int | None  # the card just taken, which may not be thrown


@lru_cache(maxsize=200_000)
def _melds_in(hand: tuple[int, ...]) -> tuple[int, ...]:
    """Returns which of `LAYABLE` a hand holds."""
    held = set(hand)
    return tuple(number for number, (cards, _) in enumerate(LAYABLE) if held.issuperset(cards))


def _less(hand: tuple[int, ...], cards: Sequence[int]) -> tuple[int, ...]:
    rest = list(hand)
    for card in cards:
        rest.remove(card)
    return tuple(rest)


class Result(NamedTuple):
    """How a hand ended."""

    ending: str
    out: int | None
    penalties: tuple[int, ...]
    turns: int  # draws


class Table:
    """One table, at which one hand is played after another.

    Attributes:
        rules: The house rules.
        match: Whether scores go on to the limit.
        dealer: Seat.
        mover: Seat.
        phase: "draw", "play" or "over".
        hands: The cards of each seat.
        known: By seat, cards in its hand that the others have seen.
        opened: By seat.
        melds: On the table.
        pile: The discard pile, its top card last.
        pile_by: Who threw each card of the pile; None for the card turned up.
        stock: The stock, its top card first.
        booked: Penalties by seat for melds taken back in this hand.
        scores: Match points by seat.
        result: Of the last hand that ended.
        match_winners: Seats; empty while the match goes on.
    """

    def __init__(self, rules: Rummy40Rules, match: bool = False) -> None:
        """Prepares a table; `deal` starts a hand."""
        self.rules = rules
        self.match = match
        self.scores = [0] * rules.seats
        self.result: Result | None = None
        self.match_winners: list[int] = []
        self.pack = [13 * suit + rank for suit in range(rules.suits) for rank in range(rules.ranks)]

    def next_dealer(self) -> int | None:
        """Returns who deals the next hand, or None where chance or the host decides: the first of an episode."""
        if self.result is None or not self.match or self.match_winners:
            return None if self.rules.first_dealer == "random" else self.rules.first_dealer
        if self.result.ending == "truncated":
            return self.dealer
        return (self.dealer + 1) % self.rules.seats

    def deal(self, deck: Sequence[int], dealer: int) -> None:
        """Deals a hand from all cards in the given order."""
        assert sorted(deck) == sorted(self.pack * self.rules.num_packs) + [JOKER] * self.rules.num_jokers
        seats = self.rules.seats
        if not self.match or self.match_winners:
            self.scores, self.match_winners = [0] * seats, []
        self.dealer = dealer
        rest = list(deck)
        hands: list[list[int]] = [[] for _ in range(seats)]
        for _ in range(self.rules.hand_size):
            for step in range(1, seats + 1):
                hands[(dealer + step) % seats].append(rest.pop(0))
        self.hands = [tuple(sorted(hand)) for hand in hands]
        self.known: list[list[int]] = [[] for _ in range(seats)]
        self.opened = [False] * seats
        self.booked = [0] * seats
        self.melds: tuple[Meld, ...] = ()
        self.pile = [rest.pop(0)]
        self.pile_by: list[int | None] = [None]
        self.stock = rest
        self.taken: int | None = None
        self.drawn: int | None = None
        self.draws = 0
        self.mover = (dealer + 1) % seats
        self.phase = "draw"
        self.start_turn()

    def start_turn(self) -> None:
        """What a turn begins with."""
        self.laid = self.attempt = self.owed = 0
        self.attempted = False
        self.banned: int | None = None

    # ------------------------------------------------------------------------------------------------- what is legal

    def legal(self) -> list[int]:
        """Returns the moves that the player may choose from, ascending."""
        if self.phase == "over":
            return []
        if self.phase == "draw":
            may_take = self.rules.pile == "anyone" or self.opened[self.mover]
            return [DRAW, TAKE] if may_take else [DRAW]
        turn = self.turn()
        self._ends: dict[Turn, bool] = {}
        moves = [discard(card) for card in self._throws(turn)]
        moves += [move for move, after in self._moves(turn) if self._can_end(after)]
        if self.attempt and self.rules.wrong_opening == "penalty":
            moves.append(TAKE_BACK)
        return sorted(moves)

    def turn(self) -> Turn:
        """Returns the turn as far as it has come."""
        me = self.mover
        return Turn(self.hands[me], self.melds, self.opened[me], self.laid, self.attempt, self.owed, self.banned)

    def _throws(self, turn: Turn) -> list[int]:
        """The cards that can be thrown: not with a stolen joker in hand, nor with melds below the minimum laid."""
        if turn.owed or turn.attempt:
            return []
        free = _less(turn.hand, [turn.banned]) if turn.banned is not None else turn.hand
        jokers = turn.opened and len(turn.hand) > 1
        return sorted({card for card in free if card != JOKER or jokers})

    def _can_end(self, turn: Turn) -> bool:
        """Whether the turn can end: by trying all that can be done."""
        if self._throws(turn):
            return True
        if turn.attempt:
            if self.rules.wrong_opening == "penalty":
                return True
            # No joker counts more than ten.
            if turn.laid + sum(10 if card == JOKER else points(card) for card in turn.hand) < self.rules.opening:
                return False
        if turn not in self._ends:
            self._ends[turn] = any(self._can_end(after) for _, after in self._moves(turn))
        return self._ends[turn]

    def _moves(self, turn: Turn) -> Iterator[tuple[int, Turn]]:
        """Yields what can be laid, added and stolen, dead ends included, and what comes of it."""
        if not turn.opened and self.attempted:
            return
        lays = [number for number in _melds_in(turn.hand) if self._in_pack(number)]
        # The dearest first, which finds an opening soonest.
        for number in sorted(lays, key=lambda number: -self._meld_points(number)):
            yield FIRST_MELD + number, self._lay(turn, number)
        if not turn.opened:
            return
        for block, (kind, which) in enumerate(BLOCKS):
            for card in range(52):
                slot = self._slot(turn, kind, card, which)
                if slot is not None:
                    yield FIRST_PLACE + 52 * block + card, self._place(turn, kind, card, slot)

    def _in_pack(self, number: int) -> bool:
        """Whether a meld's joker can stand for a card that is in play."""
        cards, first = LAYABLE[number]
        return JOKER not in cards or bool(set(Meld(0, cards, first).stands(self.pack)) & set(self.pack))

    def _meld_points(self, number: int) -> int:
        cards, first = LAYABLE[number]
        if first is None:
            return len(cards) * points(cards[0])
        return sum(points(first + k) for k in range(len(cards)))

    def _lay(self, turn: Turn, number: int) -> Turn:
        cards, first = LAYABLE[number]
        turn = self._part(turn, cards)
        turn = turn._replace(melds=(*turn.melds, Meld(self.mover, cards, first)))
        if turn.opened:
            return turn
        laid = turn.laid + self._meld_points(number)
        if laid >= self.rules.opening:
            return turn._replace(opened=True, laid=0, attempt=0)
        return turn._replace(laid=laid, attempt=turn.attempt + 1)

    def _slot(self, turn: Turn, kind: str, card: int, which: int) -> int | None:
        """Which meld has the place, if there is one and the player has what goes there."""
        if (JOKER if kind in JOKERS else card) not in turn.hand:
            return None
        whose = self.rules.stealing if kind in STEALS else self.rules.adds_to
        if whose == "no":
            return None
        slots = [
            slot
            for slot, meld in enumerate(turn.melds)
            if whose == "any" or meld.owner == self.mover
            if card in meld.places(self.pack).get(kind, [])
        ]
        return slots[which] if which < len(slots) else None

    def _place(self, turn: Turn, kind: str, card: int, slot: int) -> Turn:
        turn = self._part(turn, [JOKER if kind in JOKERS else card])
        melds = list(turn.melds)
        melds[slot] = melds[slot].grown(kind, card)
        turn = turn._replace(melds=tuple(melds))
        if kind in STEALS:
            turn = turn._replace(hand=tuple(sorted((*turn.hand, JOKER))), owed=turn.owed + 1)
        return turn

    def _part(self, turn: Turn, cards: Sequence[int]) -> Turn:
        """The turn without some cards of the hand, which settle what is owed first and the ban then."""
        for card in cards:
            turn = turn._replace(hand=_less(turn.hand, [card]))
            if card == JOKER and turn.owed:
                turn = turn._replace(owed=turn.owed - 1)
            elif card == turn.banned:
                turn = turn._replace(banned=None)
        return turn

    # --------------------------------------------------------------------------------------------------------- moves

    def play(self, move: int) -> None:
        """Plays a move, which must be legal."""
        me = self.mover
        if move in (DRAW, TAKE):
            self._draw(taking=move == TAKE)
        elif move == TAKE_BACK:
            self._take_back()
        elif move < FIRST_MELD:
            self._throw(move - discard(0))
        else:
            before = self.turn()
            if move < FIRST_PLACE:
                after = self._lay(before, move - FIRST_MELD)
            else:
                kind, which = BLOCKS[(move - FIRST_PLACE) // 52]
                card = (move - FIRST_PLACE) % 52
                slot = self._slot(before, kind, card, which)
                assert slot is not None
                after = self._place(before, kind, card, slot)
            self._forget(before.hand, after.hand)
            self.hands[me], self.melds, self.opened[me] = after.hand, after.melds, after.opened
            self.laid, self.attempt, self.owed, self.banned = after.laid, after.attempt, after.owed, after.banned

    def _forget(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """Keeps what the others know of the hand: cards that have left it, and a joker that has come from the table."""
        known = self.known[self.mover]
        for card in set(before) | set(after):
            change = after.count(card) - before.count(card)
            for _ in range(-change):
                if card in known:
                    known.remove(card)
            known += [card] * change

    def _draw(self, taking: bool) -> None:
        me = self.mover
        if taking:
            card = self.taken = self.pile.pop()
            self.pile_by.pop()
            self.known[me].append(card)
            self.banned = None if self.rules.rediscard else card
        else:
            card = self.drawn = self.stock.pop(0)
        self.hands[me] = tuple(sorted((*self.hands[me], card)))
        self.draws += 1
        self.phase = "play"

    def _take_back(self) -> None:
        me = self.mover
        for meld in self.melds[len(self.melds) - self.attempt :]:
            self.hands[me] = tuple(sorted(self.hands[me] + meld.cards))
            self.known[me] += meld.cards
        self.melds = self.melds[: len(self.melds) - self.attempt]
        self.laid = self.attempt = 0
        self.attempted = True
        self.banned = None if self.rules.rediscard else self.taken
        self.booked[me] += self.rules.opening_penalty

    def _throw(self, card: int) -> None:
        me = self.mover
        before = self.hands[me]
        self.hands[me] = _less(before, [card])
        self._forget(before, self.hands[me])
        self.pile.append(card)
        self.pile_by.append(me)
        self.taken = self.drawn = None
        self.start_turn()
        if not self.hands[me]:
            self._end("out", me)
        elif not self.stock:
            self._end("stock", None)
        elif self.draws >= self.rules.draw_cap:
            self._end("truncated", None)
        else:
            self.phase = "draw"
            self.mover = (me + 1) % self.rules.seats

    def _end(self, ending: str, out: int | None) -> None:
        self.phase = "over"
        rules = self.rules
        left = [sum(rules.joker_points if c == JOKER else points(c) for c in hand) for hand in self.hands]
        penalties = [0 if ending == "truncated" else left[seat] + self.booked[seat] for seat in range(rules.seats)]
        self.result = Result(ending, out, tuple(penalties), self.draws)
        if not self.match:
            return
        self.scores = [score + penalty for score, penalty in zip(self.scores, penalties, strict=True)]
        if ending == "truncated":
            return
        lowest = [seat for seat in range(rules.seats) if self.scores[seat] == min(self.scores)]
        if rules.limit is None or max(self.scores) >= rules.limit and not (rules.seats == 2 and len(lowest) == 2):
            self.match_winners = lowest
