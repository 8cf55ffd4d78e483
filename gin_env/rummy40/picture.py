"""A seat's view of Rummy40 as a picture, with the pen and the cards of `gin_env.picture`."""

import numpy as np

from gin_env.cards import NO_CARD, NUM_RANKS
from gin_env.picture import DIM, GOLD, MARGIN, SMALL_HEIGHT, SMALL_WIDTH, WIDTH, Drawing, Pen, paint
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.render import (
    hand_of,
    head_text,
    known_of,
    melds_of,
    own_text,
    player,
    score_text,
    state_text,
)
from gin_env.rummy40.tables import OVER

# Pixels.
_LINE_HEIGHT = SMALL_HEIGHT + 4  # of melds
_LINES = 4  # of melds that have room
_STEPS = (24, 18, 13, 9)  # between cards of a meld, the widest that leaves them room
_GAP = 12  # between melds


def render_picture(view: np.void) -> np.ndarray:
    """Draws one seat's view: the others above, melds, stock and discard pile in the middle, one's own hand below.

    Args:
        view: A row of `gin_env.rummy40.view.VIEW_DTYPE`.

    Returns:
        (640, 960, 3) uint8, RGB.

    Raises:
        ImportError: If Pillow is not installed.
    """
    return paint(lambda pen: _Picture(pen, view).draw())


class _Picture(Drawing):
    def __init__(self, pen: Pen, view: np.void) -> None:
        super().__init__(pen)
        self.view = view
        self.seats = int(view["rules"]["seats"])

    def draw(self) -> None:
        view = self.view
        over = view["phase"] == OVER
        self.frame(head_text(view), score_text(view), state_text(view), bool(view["to_move"] or over))
        room = (WIDTH - 2 * MARGIN) // (self.seats - 1)
        for who in range(1, self.seats):
            self.other(who, MARGIN + (who - 1) * room, 56, room - 16)
        self.melds(140)
        self.stock_and_pile(334, int(view["stock"]), view["pile"][: view["pile_size"]])
        if view["attempt"]:
            said = f"{view['attempt_points']} of {view['rules']['opening']} laid"
            self.text(WIDTH - MARGIN, 368, said, 22, GOLD, right=True)
        self.text(WIDTH - MARGIN, 400, f"draw {view['draws']}", 15, DIM, right=True)
        self.hand(456)

    def other(self, who: int, x: int, y: int, room: int) -> None:
        """Another player's cards, known ones face up."""
        view = self.view
        known = known_of(view, who)
        label = player(view, who) + (" (dealer)" if view["dealer"] == who else "")
        if view["phase"] == OVER:
            label += f"   {view['penalties'][who]} points"
        else:
            label += "   opened" if view["opened"][who] else ""
            label += f"   {view['booked'][who]} booked" if view["booked"][who] else ""
        moves = view["mover"] == who and view["phase"] != OVER
        self.text(x, y, label, 15, GOLD if moves else DIM)
        hidden = int(view["num_cards"][who]) - len(known)
        cards = [*known, *[None] * hidden]
        step = min(SMALL_WIDTH + 4, (room - SMALL_WIDTH) // max(len(cards) - 1, 1))
        for place, card in enumerate(cards):
            self.small_card(card, x + place * step, y + 22)

    def melds(self, y: int) -> None:
        """What lies on the table, by owner; a line that is full goes on in the next."""
        laid = [(who, melds) for who in range(self.seats) if (melds := melds_of(self.view, who))]
        if not laid:
            self.text(MARGIN, y + 10, "no melds on the table", 15, DIM)
            return
        for step in _STEPS:
            places, lines = self.placed(laid, step)
            if lines <= _LINES:
                break
        for what, x, line in places:
            top = y + line * _LINE_HEIGHT
            if isinstance(what, str):
                self.text(x, top + 12, what, 15, DIM)
                continue
            for place, card in enumerate(what):
                self.small_card(card, x + place * step, top)

    def placed(
        self, laid: list[tuple[int, list[list[int]]]], step: int
    ) -> tuple[list[tuple[str | list[int], int, int]], int]:
        """Returns labels and melds with their place from the left and their line, and the number of lines."""
        places: list[tuple[str | list[int], int, int]] = []
        x, line = MARGIN, 0
        for who, melds in laid:
            row: list[str | list[int]] = [player(self.view, who), *melds]
            for what in row:
                # A label keeps its first meld beside it.
                width = 74 if isinstance(what, str) else SMALL_WIDTH + step * (len(what) - 1) + _GAP
                needed = width + (SMALL_WIDTH + 2 * step if isinstance(what, str) else -_GAP)
                if x + needed > WIDTH - MARGIN:
                    x, line = MARGIN, line + 1
                places.append((what, x, line))
                x += width
            x += _GAP
        return places, line + 1

    def hand(self, y: int) -> None:
        view = self.view
        self.text(MARGIN, y, f"your hand   {own_text(view)}", 15, DIM)
        fresh = 0
        for field in ("drawn", "taken"):
            if view["to_move"] and view[field] != NO_CARD:
                fresh |= 1 << int(view[field])
        cards = sorted(hand_of(view), key=lambda card: (card == JOKER, card % NUM_RANKS, card))
        self.row(y + 30, [cards], raised=fresh)
