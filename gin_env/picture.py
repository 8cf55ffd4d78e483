"""A seat's view as a picture, drawn with Pillow; and the pen and the cards that pictures of both games are made of."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gin_env.cards import NUM_CARDS, NUM_RANKS, RANKS, from_mask
from gin_env.melds import arrange
from gin_env.render import head_text, pack_of, state_text
from gin_env.tables import DECLARE, OVER
from gin_env.view import OWN

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_Color = tuple[int, int, int]
_SCALE = 3
# Pixels.
WIDTH, HEIGHT = 960, 640
_CARD_WIDTH, _CARD_HEIGHT, _CORNER = 62, 88, 7
SMALL_WIDTH, SMALL_HEIGHT = 30, 42
_STEP = 36  # between cards that overlap
_GAP = 26  # between melds
MARGIN = 32

_FELT, _FELT_DARK, _LINE = (24, 92, 62), (17, 70, 47), (72, 138, 106)
_PAPER, _EDGE, _BACK, _BACK_LINE = (250, 249, 244), (150, 150, 140), (40, 72, 128), (120, 148, 196)
_RED, _BLACK, _TEXT, DIM, GOLD = (190, 28, 40), (28, 28, 30), (238, 240, 232), (168, 200, 182), (240, 200, 92)
_JOKER = (122, 58, 150)
_SHOWN = 12  # cards of the discard pile, from its top


def render_picture(view: np.void) -> np.ndarray:
    """Draws one seat's view: the opponent above, stock and discard pile in the middle, one's own hand below.

    Args:
        view: A row of `gin_env.view.VIEW_DTYPE`.

    Returns:
        (640, 960, 3) uint8, RGB.

    Raises:
        ImportError: If Pillow is not installed.
    """
    return paint(lambda pen: _Picture(pen, view).draw())


def paint(draw: Callable[["Pen"], None]) -> np.ndarray:
    """Returns what a function draws with a pen on an empty table.

    Returns:
        (640, 960, 3) uint8, RGB.

    Raises:
        ImportError: If Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError(
            f'pictures need Pillow: pip install "gin-env[pictures]" ({error})', name=error.name
        ) from error

    # Larger and then reduced, which makes slanted edges smooth.
    image = Image.new("RGB", (_SCALE * WIDTH, _SCALE * HEIGHT), _FELT)
    draw(Pen(ImageDraw.Draw(image)))
    return np.asarray(image.reduce(_SCALE)).copy()


class Pen:
    """Draws at a larger scale, in the coordinates of the picture."""

    def __init__(self, draw: "ImageDraw") -> None:
        from PIL import ImageFont

        self._draw = draw
        self._fonts = {size: ImageFont.load_default(_SCALE * size) for size in (15, 18, 22)}

    def box(
        self,
        corners: Sequence[int],
        fill: _Color | None = None,
        outline: _Color | None = None,
        width: int = 1,
        corner: int = 0,
    ) -> None:
        """Draws a rectangle, its corners rounded by so many pixels."""
        large = [_SCALE * place for place in corners]
        self._draw.rounded_rectangle(large, _SCALE * corner, fill, outline, _SCALE * width)

    def ellipse(self, corners: Sequence[int], fill: _Color) -> None:
        """Draws an ellipse inside a rectangle."""
        self._draw.ellipse([_SCALE * place for place in corners], fill)

    def polygon(self, corners: Sequence[tuple[int, int]], fill: _Color) -> None:
        """Draws a polygon."""
        self._draw.polygon([(_SCALE * x, _SCALE * y) for x, y in corners], fill)

    def text(self, x: int, y: int, text: str, size: int, fill: _Color, right: bool) -> None:
        """Writes a line of 15, 18 or 22 pixels, from its upper left corner or to its upper right one."""
        anchor = "ra" if right else "la"
        self._draw.text((_SCALE * x, _SCALE * y), text, fill, self._fonts[size], anchor)


class Drawing:
    """Cards and texts on a table.

    Args:
        pen: What it is drawn with.
    """

    def __init__(self, pen: Pen) -> None:
        self.pen = pen

    def frame(self, head: str, score: str, state: str, bright: bool) -> None:
        """Draws the bars above and below: who sits where, the score, and what is to be done."""
        self.pen.box((0, 0, WIDTH, 46), _FELT_DARK)
        self.text(MARGIN, 12, head, 18)
        self.text(WIDTH - MARGIN, 12, score, 18, right=True)
        self.pen.box((0, HEIGHT - 46, WIDTH, HEIGHT), _FELT_DARK)
        self.text(MARGIN, HEIGHT - 34, state, 18, GOLD if bright else _TEXT)

    def stock_and_pile(self, y: int, stock: int, pile: Sequence[int]) -> None:
        """Draws the stock, and the discard pile from its bottom, of which the uppermost cards are shown."""
        self.text(MARGIN, y, f"stock   {stock} cards", 15, DIM)
        for depth in range(min(3, stock)):
            self.card(None, MARGIN + 3 * depth, y + 22 + 2 * depth)
        left = 190
        size = len(pile)
        self.text(left, y, f"discard pile   {size} card{'' if size == 1 else 's'}", 15, DIM)
        shown = pile[max(size - _SHOWN, 0) :]
        for place, card in enumerate(shown):
            self.card(int(card), left + place * _STEP, y + 22, place == len(shown) - 1)
        if not size:
            self.pen.box((left, y + 22, left + _CARD_WIDTH, y + 22 + _CARD_HEIGHT), None, _LINE, 2, _CORNER)

    def text(self, x: int, y: int, text: str, size: int, color: _Color = _TEXT, right: bool = False) -> None:
        """Writes a line, as `Pen.text` does."""
        self.pen.text(x, y, text, size, color, right)

    def row(self, y: int, groups: Iterable[Sequence[int | None]], raised: int = 0) -> None:
        """Draws groups of cards side by side; None is a card face down, and cards of ``raised`` stand out."""
        groups = [group for group in groups if group]
        cards = sum(len(group) for group in groups)
        room = WIDTH - 2 * MARGIN - _CARD_WIDTH * max(len(groups), 1) - _GAP * max(len(groups) - 1, 0)
        step = min(_STEP if cards > 12 else 44, room // max(cards - len(groups), 1))
        x = MARGIN
        for group in groups:
            for card in group:
                up = card is not None and raised >> card & 1
                self.card(card, x, y - (10 if up else 0), bool(up))
                x += step
            x += _CARD_WIDTH - step + _GAP

    def card(self, card: int | None, x: int, y: int, marked: bool = False) -> None:
        """Draws a card face up, or face down where it is None."""
        box = (x, y, x + _CARD_WIDTH, y + _CARD_HEIGHT)
        if card is None:
            self.pen.box(box, _BACK, _PAPER, 3, _CORNER)
            self.pen.box((x + 9, y + 9, x + _CARD_WIDTH - 9, y + _CARD_HEIGHT - 9), None, _BACK_LINE, 2, 4)
            return
        suit, rank = divmod(card, NUM_RANKS)
        color = _RED if suit in (1, 2) else _BLACK
        self.pen.box(box, _PAPER, GOLD if marked else _EDGE, 3 if marked else 1, _CORNER)
        if card >= NUM_CARDS:
            self.text(x + 7, y + 5, "JK", 22, _JOKER)
            self.star(x + _CARD_WIDTH // 2, y + _CARD_HEIGHT - 32, 18)
            return
        self.text(x + 7, y + 5, RANKS[rank].replace("T", "10"), 22, color)
        self.pip(suit, x + 15, y + 40, 8, color)
        self.pip(suit, x + _CARD_WIDTH - 22, y + _CARD_HEIGHT - 26, 15, color)

    def small_card(self, card: int | None, x: int, y: int, marked: bool = False) -> None:
        """Draws a card of `SMALL_WIDTH` by `SMALL_HEIGHT` pixels face up, or face down where it is None."""
        box = (x, y, x + SMALL_WIDTH, y + SMALL_HEIGHT)
        if card is None:
            self.pen.box(box, _BACK, _PAPER, 2, 4)
            return
        suit, rank = divmod(card, NUM_RANKS)
        color = _RED if suit in (1, 2) else _BLACK
        self.pen.box(box, _PAPER, GOLD if marked else _EDGE, 2 if marked else 1, 4)
        if card >= NUM_CARDS:
            self.text(x + 3, y + 2, "JK", 15, _JOKER)
            self.star(x + 11, y + SMALL_HEIGHT - 12, 7)
            return
        self.text(x + 4, y + 2, RANKS[rank].replace("T", "10"), 15, color)
        self.pip(suit, x + 10, y + SMALL_HEIGHT - 12, 6, color)

    def star(self, x: int, y: int, r: int) -> None:
        """Draws the sign of a joker, a star of four points."""
        h = r // 3
        around = ((0, -r), (h, -h), (r, 0), (h, h), (0, r), (-h, h), (-r, 0), (-h, -h))
        self.pen.polygon([(x + right, y + down) for right, down in around], fill=_JOKER)

    def pip(self, suit: int, x: int, y: int, r: int, color: _Color) -> None:
        """Draws the sign of a suit (S H D C) of about ``r`` pixels in each direction around a point."""
        pen = self.pen
        h = r // 2
        if suit == 2:
            pen.polygon([(x, y - r), (x + r - 2, y), (x, y + r), (x - r + 2, y)], fill=color)
            return
        if suit == 1:
            pen.ellipse((x - r, y - r + 1, x, y + 1), fill=color)
            pen.ellipse((x, y - r + 1, x + r, y + 1), fill=color)
            pen.polygon([(x - r + 1, y - h + 3), (x + r - 1, y - h + 3), (x, y + r)], fill=color)
            return
        if suit == 0:
            pen.ellipse((x - r, y - 1, x, y + r - 1), fill=color)
            pen.ellipse((x, y - 1, x + r, y + r - 1), fill=color)
            pen.polygon([(x - r + 1, y + h - 2), (x + r - 1, y + h - 2), (x, y - r)], fill=color)
        else:
            pen.ellipse((x - h, y - r, x + h, y), fill=color)
            pen.ellipse((x - r, y - h + 1, x, y + h + 1), fill=color)
            pen.ellipse((x, y - h + 1, x + r, y + h + 1), fill=color)
        pen.polygon([(x, y), (x + h, y + r), (x - h, y + r)], fill=color)


class _Picture(Drawing):
    def __init__(self, pen: Pen, view: np.void) -> None:
        super().__init__(pen)
        self.view = view

    def draw(self) -> None:
        view = self.view
        score = f"you {view['own_score']}   opponent {view['opponent_score']}   to {view['target']}"
        bright = bool(view["to_move"] or view["phase"] == OVER)
        self.frame(head_text(view), score if view["target"] else "", state_text(view), bright)
        showdown = view["phase"] >= DECLARE and view["knocker"] >= 0
        over = view["phase"] == OVER
        self.opponent(70)
        if showdown and not over:
            self.laid_on_the_table(258)
        else:
            self.pile(258)
        self.hand(444)

    # ------------------------------------------------------------------------------------------------- the regions

    def opponent(self, y: int) -> None:
        view = self.view
        known = int(view["opponent_known"])
        melds = [int(meld) for meld in view["opponent_melds"] if meld]
        if view["knocker"] == OWN:
            known &= ~sum(int(cards) for cards in view["layoffs"])
        label = "opponent"
        if view["opponent_deadwood"] >= 0:
            label += f"   deadwood {view['opponent_deadwood']}"
        self.text(MARGIN, y, label, 15, DIM)
        for meld in melds:
            known &= ~meld
        hidden = int(view["opponent_cards"]) - int(view["opponent_known"]).bit_count()
        self.row(y + 22, [*(from_mask(meld) for meld in melds), from_mask(known), [None] * hidden])

    def pile(self, y: int) -> None:
        view = self.view
        self.stock_and_pile(y, int(view["stock"]), view["pile"][: view["pile_size"]])
        limit = int(view["limit"])
        self.text(WIDTH - MARGIN, y + 34, f"knock with {limit}" if limit else "gin only", 22, right=True)
        self.text(WIDTH - MARGIN, y + 66, f"turn {int(view['draws']) + (not self.throwing())}", 15, DIM, right=True)

    def throwing(self) -> bool:
        """Whether the mover has drawn in this turn."""
        return int(self.view["draws"]) > 0 and int(self.view["hand"]).bit_count() + int(
            self.view["opponent_cards"]
        ) > 2 * int(self.view["rules"]["hand_size"])

    def laid_on_the_table(self, y: int) -> None:
        view = self.view
        mine = view["knocker"] == OWN
        label = "the knocker's melds" if mine else "the knocker's melds: lay off on them"
        self.text(MARGIN, y, label, 15, DIM)
        melds = view["own_melds"] if mine else view["opponent_melds"]
        groups = [from_mask(int(meld) | int(added)) for meld, added in zip(melds, view["layoffs"], strict=True) if meld]
        laid_off = sum(int(cards) for cards in view["layoffs"])
        self.row(y + 22, groups, raised=laid_off)

    def hand(self, y: int) -> None:
        view = self.view
        hand = int(view["hand"])
        showdown = view["phase"] >= DECLARE and view["knocker"] >= 0
        melds = [int(meld) for meld in view["own_melds"] if meld]
        if view["phase"] < DECLARE:
            laid = arrange(np.array([hand], dtype=np.uint64), pack_of(view["rules"]))
            melds = [int(meld) for meld in laid.melds[0] if meld]
        label = "your hand"
        if view["own_deadwood"] >= 0:
            label += f"   deadwood {view['own_deadwood']}"
        if showdown and view["knocker"] != OWN:
            off = sum(int(cards) for cards in view["layoffs"])
            hand &= ~off
        self.text(MARGIN, y, label, 15, DIM)
        loose = hand
        for meld in melds:
            loose &= ~meld
        fresh = 0
        for field in ("drawn", "taken"):
            if view["to_move"] and view[field] >= 0:
                fresh |= 1 << int(view[field])
        by_rank = sorted(from_mask(loose), key=lambda card: (card % NUM_RANKS, card))
        self.row(y + 26, [*(from_mask(meld) for meld in melds), by_rank], raised=fresh)
