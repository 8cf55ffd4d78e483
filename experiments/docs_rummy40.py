"""The page of Rummy40 in docs/, printed from the code like the others (`experiments.docs`)."""

import inspect
from collections.abc import Iterator
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from experiments.docs import _attributes, _code, _fields, _list, _plain, _planes, _scalars, _span, _table
from gin_env.cards import NUM_CARDS
from gin_env.fields import value_text
from gin_env.rummy40 import actions, tables, turn, view
from gin_env.rummy40.cards import JOKER, cards_text
from gin_env.rummy40.rules import PRESETS, RANGES, RULES_DTYPE, Rummy40Rules, preset


def page() -> str:
    """Returns the page's text."""
    two, four = preset("rummy40"), preset("rummy40", seats=4)
    summary, _, returns = (inspect.getdoc(view.state) or "").partition("Returns:")
    return f"""
# Rummy40

A second game: jokers, melds that lie on the table, two players or four, all against all. `gin_env.rummy40` is laid out
as `gin_env` is: `rules`, `actions`, `tables`, `engine`, `view`, `record`; `aec`, `seat`, `vector`, `render`. Points are
penalties; each seat wins the mean of the others' penalties less its own, so the points of a hand sum to zero.

```python
import gymnasium
import gin_env

env = gymnasium.make("gin_env/Rummy40-v0", rules="rummy40:seats=4")
observation, info = env.reset(seed=1)
observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
```

The same for PettingZoo, `gin_env.rummy40.aec.env`, and at many tables at once, `gymnasium.make_vec`: see
[environments](guide/environments.md#rummy40). The engine itself:

```python
from gin_env.rummy40 import engine, view

tables = engine.new_tables("rummy40:seats=4,opening=50", 256, seed=7)
observations, masks = view.look(tables)
points, over = engine.step(tables, masks.argmax(axis=1))
```

## Rules

Every number and choice is a field of `gin_env.rummy40.Rummy40Rules`; text names a preset ({_names()}) and what differs
from it. With two players {two.num_packs} pack and {two.num_jokers} jokers are in play ({two.deck_size} cards), with
four {four.num_packs} packs and {four.num_jokers} jokers ({four.deck_size}).

{_table(("field", "values", "default", "meaning"), _rules())}

What the engine does where a rule page is silent:

{_decisions()}

## Actions

One table, `Discrete({actions.NUM_ACTIONS})` with one pack and `Discrete({actions.NUM_TWO_PACK_ACTIONS})` with two
(`Rummy40Rules.num_actions`). Card ids are those of [gin](actions.md), a joker is {JOKER}. `action_name` writes an
action as text and `parse_action` reads it, both in `gin_env.rummy40.actions`.

{_table(("id", "text", "action"), _actions())}

The {actions.NUM_MELDS} melds that one action lays, in the order of `MELDS`; longer runs grow by adding:

{_table(("meld", "number", "action", "first", "last"), _melds())}

## Observations

`gin_env.rummy40.view.observe` makes the view of one seat, `encode` the vector that networks read, `look` vector and
mask in one pass. Players are told as they sit from the one that looks: 0 is itself, 1 the player after it, and so on.

{_fields(view.VIEW_FIELDS)}

The vector has {view.OBSERVATION_SIZE[2]} numbers with two players, of which the first {len(view.planes(2)) * NUM_CARDS}
reshape to `({len(view.planes(2))}, 4, 13)`. Version {view.OBSERVATION_VERSION}.

{_planes(view.planes(2), _starts(2))}

{_scalars(view.scalars(2), _starts(2))}

With four players it has {view.OBSERVATION_SIZE[4]} numbers and {len(view.planes(4))} planes; what ends with `_1` is
there for players 2 and 3 too:

{_list(f"{_span(at, at + width - 1)}: {_code(name)}" for name, at, width in _extent(4))}

The hidden state, `gin_env.rummy40.view.state(tables)`: {_plain(summary)} {_plain(returns)}

## Tables

The state of a table, for those who work on the engine itself. Phases are {_numbered(tables.PHASES)}; endings are
{_numbered(tables.ENDINGS)}.

{_fields(tables.TABLE_FIELDS)}

The field `rules` is a record of its own, with these fields as numbers:
{", ".join(_code(name) for name in RULES_DTYPE.names or ())}.
"""


def _names() -> str:
    return ", ".join(_code(name) for name in PRESETS)


def _numbered(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {number}" for number, name in enumerate(names))


def _rules() -> Iterator[tuple[object, ...]]:
    meanings, default = _attributes(Rummy40Rules), Rummy40Rules()
    for name, kind in get_type_hints(Rummy40Rules).items():
        yield _code(name), _values(name, kind), _code(value_text(getattr(default, name))), meanings[name]


def _values(field: str, kind: Any) -> str:
    """Returns the values of a field of the rules."""
    words = []
    for part in (kind,) if get_origin(kind) is Literal else get_args(kind) or (kind,):
        if get_origin(part) is Literal:
            words += [_code(value_text(choice)) for choice in get_args(part)]
        elif part is NoneType:
            words.append("`none`")
        elif field in RANGES:
            words.append("{} to {:,}".format(*RANGES[field]))
        else:
            words.append("`false`, `true`" if part is bool else "text")
    return ", ".join(words)


def _decisions() -> str:
    """The decisions, as the docstring of the module that enforces them lists them."""
    _, _, items = (inspect.getdoc(turn) or "").partition("\n- ")
    return _list(_plain(item) for item in items.split("\n- "))


def _actions() -> Iterator[tuple[object, ...]]:
    for first, number, form, meaning in actions.ACTION_TABLE:
        yield _span(first, first + number - 1), _code(form), meaning


def _melds() -> Iterator[tuple[object, ...]]:
    kinds = []
    for meld in actions.MELDS:
        joker = JOKER in meld.cards
        if meld.low < 0:
            kinds.append("sets of three and four, without and with a joker")
        else:
            length = ("three", "four", "five")[len(meld.cards) - 3]
            kinds.append(f"runs of {length}" + (f", a joker in place {meld.cards.index(JOKER) + 1}" if joker else ""))
    for kind in dict.fromkeys(kinds):
        numbers = [number for number, other in enumerate(kinds) if other == kind]
        first, last = numbers[0], numbers[-1]
        yield (
            f"{kind} ({len(numbers)})",
            _span(first, last),
            _span(actions.LAY + first, actions.LAY + last),
            cards_text(actions.MELDS[first].cards),
            cards_text(actions.MELDS[last].cards),
        )


def _extent(seats: int) -> Iterator[tuple[str, int, int]]:
    """Yields the fields of the vector: name, first number, how many."""
    at = 0
    for fields, width in ((view.planes(seats), NUM_CARDS), (view.scalars(seats), 1)):
        for name, _ in fields:
            yield name, at, width
            at += width


def _starts(seats: int) -> dict[str, int]:
    return {name: at for name, at, _ in _extent(seats)}
