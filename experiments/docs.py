"""The reference pages in docs/, printed from the code: `ginrummy docs --out docs`.

Names, ids, ranges and meanings are read from where they are defined, scores are played by the engine, and a test
compares the files with what this module prints. Only the sentences around them are written here.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import DTypeLike

from agents import base
from experiments.files import write_text
from gin_env import actions, engine, melds, tables, view
from gin_env.cards import NUM_CARDS, NUM_RANKS, RANKS, SUIT_GLYPHS, SUITS, card_name, cards_text, parse_cards, to_mask
from gin_env.rulebook import DECISIONS, SOURCES, Source, describe
from gin_env.rules import PRESETS, RANGES, RULES_DTYPE, Rules, as_rules, value_text
from training.config import CONFIGS, RunConfig
from training.folder import LOCK
from training.metrics import GLOSSARY

MARK = "<!-- Printed by `ginrummy docs --out docs`. Change the code that it is printed from, then run that again. -->"
HOUSE = Path(__file__).parent / "rules" / "house.toml"


def pages() -> dict[str, str]:
    """Returns all pages: their text by their path in docs/."""
    from experiments import docs_rummy40  # it prints its tables with the functions below

    found = {
        "index.md": _index(),
        "actions.md": _actions(),
        "observations.md": _observations(),
        "tables.md": _tables(),
        "training.md": _training(),
        "players.md": _players(),
        "rummy40.md": docs_rummy40.page(),
        "rules/index.md": _rules(),
        **{f"rules/{name}.md": _preset(name) for name in PRESETS},
    }
    return {path: f"{MARK}\n\n{_wrap(text)}\n" for path, text in found.items()}


def write_docs(out: Path | str) -> list[Path]:
    """Writes all pages below a folder and returns their paths. Each appears whole or not at all.

    Raises:
        OSError: If a file cannot be written.
    """
    written = []
    for name, text in pages().items():
        path = Path(out) / name
        write_text(path, text)
        written.append(path)
    return written


# --------------------------------------------------------------------------------------------------------- Markdown


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _wrap(text: str) -> str:
    """Breaks the lines of paragraphs anew, for names and numbers filled into them have other lengths."""
    blocks, fenced = [], False
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        fence = block.count("```") % 2 == 1
        if not (fenced or fence or re.match(r"\||#|-|```| {4}", block)):
            block = textwrap.fill(" ".join(block.split()), 120, break_long_words=False, break_on_hyphens=False)
        fenced ^= fence
        blocks.append(block)
    return "\n\n".join(blocks)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _code(text: object) -> str:
    return f"`{text}`"


def _plain(text: str) -> str:
    """Docstring text as Markdown: double backticks are code, and a paragraph is one line."""
    return re.sub(r"\s*\n\s*", " ", text.strip()).replace("``", "`")


def _type(kind: DTypeLike) -> str:
    dtype = np.dtype(kind)
    return "record" if dtype.names else dtype.name


def _constants(first: str, names: str) -> Iterator[tuple[str, int, str]]:
    """Yields the constants of `gin_env.tables` from ``first`` on to ``names``: name, number, and their comment."""
    source = inspect.getsource(tables)
    part = source[source.index(f"\n{first} = ") : source.index(f"\n{names} = ")]
    for match in re.finditer(r"^([A-Z_]+) = (\d+)(?:  # (.*))?$", part, re.MULTILINE):
        yield match.group(1), int(match.group(2)), match.group(3) or ""


def _attributes(owner: object, heading: str = "Attributes") -> dict[str, str]:
    """Returns what a docstring says of each attribute or, with the heading ``Args``, of each argument."""
    doc = inspect.getdoc(owner) or ""
    section = re.search(rf"^{heading}:\n(.*?)(?=^\S|\Z)", doc, re.MULTILINE | re.DOTALL)
    found = re.finditer(
        r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", section.group(1) if section else "", re.MULTILINE | re.DOTALL
    )
    return {match.group(1): _plain(match.group(2)) for match in found}


# ------------------------------------------------------------------------------------------------------------ index


def _index() -> str:
    presets = _table(
        ("preset", "game", "source"),
        ((f"[{name}](rules/{name}.md)", source.game, source.title) for name, source in SOURCES.items()),
    )
    return f"""
# gin-env

## Guide

- [Quickstart](guide/quickstart.md): play, train, measure.
- [Environments](guide/environments.md): every front door, with spaces, seeds and resets.
- [Evaluation](guide/evaluation.md): duplicate deals, tournaments, ratings, intervals.
- [Coming from PettingZoo, RLCard, OpenSpiel](guide/coming-from.md): what differs.
- [A player in any language](guide/external.md): the line protocol, an example, bots of the EAAI challenge.

## Reference

What the numbers mean. These pages are printed from the code, and a test keeps them so.

- [Actions](actions.md): one table of {actions.NUM_ACTIONS} actions, {actions.NUM_MANUAL_ACTIONS} in manual play.
- [Observations](observations.md): the view of one seat, field by field, and the vector that networks read.
- [Tables](tables.md): the state of a table, for those who work on the engine itself.
- [Training](training.md): every setting of a training run, and every number that it tells.
- [Rules](rules/index.md): the fields of `Rules`, the presets side by side, and house rules.
- [Players](players.md): the rule of every player that comes with the library.
- [Rummy40](rummy40.md): the second game: its rules, actions, observations and tables.

## The presets

{presets}

`ginrummy rules` lists them, `ginrummy rules luciano` prints one on the terminal.
"""


# ---------------------------------------------------------------------------------------------------------- actions


def _actions() -> str:
    rows = re.findall(r"^(\d+(?: \+ .*?)?)  +(\S.*)$", inspect.getdoc(actions) or "", re.MULTILINE)
    table = _table(("id", "action"), ((_code(number), _plain(meaning)) for number, meaning in rows))
    suits = _table(
        ("suit", "card ids", "cards"),
        (
            (
                f"{SUIT_GLYPHS[suit]} {suit}",
                _span(NUM_RANKS * number, NUM_RANKS * (number + 1) - 1),
                f"{card_name(NUM_RANKS * number)} to {card_name(NUM_RANKS * (number + 1) - 1)}",
            )
            for number, suit in enumerate(SUITS)
        ),
    )
    examples = _table(
        ("id", "text"),
        (
            (action, _code(actions.action_name(action)))
            for action in (
                actions.PASS,
                actions.DRAW,
                actions.TAKE,
                actions.DISCARD,
                actions.KNOCK - 1,
                actions.KNOCK,
                actions.BIG_GIN - 1,
                actions.BIG_GIN,
                actions.MELD,
                actions.LAYOFF - 1,
                actions.LAYOFF,
                actions.NUM_MANUAL_ACTIONS - 1,
            )
        ),
    )
    return f"""
# Actions

Every preset plays from one table. Ids 0 to {actions.NUM_ACTIONS - 1} are the whole of it where melds and layoffs are
automatic, `Discrete({actions.NUM_ACTIONS})`; manual rules go on to `Discrete({actions.NUM_MANUAL_ACTIONS})`
(`Rules.num_actions`). The mask of legal actions has the same length.

{table}

A card's id is 13 times its suit plus its rank, the ranks being `{RANKS}`:

{suits}

## As text

`action_name` writes an action and `parse_action` reads it, both in `gin_env.actions`.

{examples}

## Melds to lay

The {actions.NUM_MELDS} melds that one action of manual play can lay, in the order of `MELDS`. A longer run is laid as
several.

{_table(("meld", "number", "action", "first", "last"), _meld_groups())}

Within a rank the sets of three come in the order of the suit that is missing, {" ".join(SUITS)}, and the set of four
last. The runs of a length go by suit and then by their lowest card. At most {actions.MAX_MELDS} melds are laid by a
player.
"""


def _meld_groups() -> Iterator[tuple[object, ...]]:
    kinds: list[str] = []
    for meld in actions.MELDS:
        cards = parse_cards(cards_text(int(meld)))
        if cards[0] % NUM_RANKS == cards[1] % NUM_RANKS:
            kinds.append("set of three or four")
        else:
            kinds.append(f"run of {('three', 'four', 'five')[len(cards) - 3]}")
    for kind in dict.fromkeys(kinds):
        numbers = [number for number, other in enumerate(kinds) if other == kind]
        first, last = numbers[0], numbers[-1]
        yield (
            f"{kind} ({len(numbers)})",
            _span(first, last),
            _span(actions.MELD + first, actions.MELD + last),
            cards_text(int(actions.MELDS[first])),
            cards_text(int(actions.MELDS[last])),
        )


# ------------------------------------------------------------------------------------------------- views and tables


def _shape(shape: tuple[int, ...]) -> str:
    return "(N" + "".join(f", {length}" for length in shape) + ("" if shape else ",") + ")"


def _fields(fields: Iterable[tuple[str, Any, tuple[int, ...], str]]) -> str:
    return _table(
        ("field", "type", "shape", "meaning"),
        ((_code(name), _type(kind), _shape(shape), meaning) for name, kind, shape, meaning in fields),
    )


def _planes(planes: Iterable[tuple[str, str]], starts: dict[str, int]) -> str:
    return _table(
        ("numbers", "plane", "meaning"),
        ((_span(starts[name], starts[name] + NUM_CARDS - 1), _code(name), _plain(meaning)) for name, meaning in planes),
    )


def _scalars(scalars: Iterable[tuple[str, str]], starts: dict[str, int]) -> str:
    return _table(
        ("number", "field", "meaning"), ((starts[name], _code(name), _plain(meaning)) for name, meaning in scalars)
    )


def _named(head: Sequence[str], names: Sequence[str], constants: Iterable[tuple[str, int, str]]) -> str:
    rows = ((names[number], number, _code(constant), meaning) for constant, number, meaning in constants)
    return _table(head, rows)


def _observations() -> str:
    summary, _, rest = (inspect.getdoc(view.state) or "").partition("\n\n")
    never, _, returns = rest.partition("Returns:")
    return f"""
# Observations

A player sees a view and a mask of legal actions, never the tables. `gin_env.view.observe` makes the view of one seat,
`encode` the vector that networks read, `look` vector and mask in one pass. Nothing in them depends on a card that the
seat has not seen.

## The view

`observe(tables)` returns N records; `view["hand"]` is that field at all tables. A set of cards is a 64-bit mask with
bit `card` set, a card is an id (see [Actions](actions.md)) or -1 for none. `OWN`, `OPPONENT` and `DEALT` are
{view.OWN}, {view.OPPONENT} and {view.DEALT}.

{_fields(view.VIEW_FIELDS)}

### Phases

{_named(("phase", "number", "constant", "the mover decides"), tables.PHASES, _constants("OFFER", "PHASES"))}

### Endings

{_named(("ending", "number", "constant", "meaning"), tables.ENDINGS, _constants("PLAYING", "ENDINGS"))}

## The vector

`encode(view)` returns float32 numbers, {view.OBSERVATION_SIZE} of them, or {view.MANUAL_OBSERVATION_SIZE} where the
rules are manual. Version {view.OBSERVATION_VERSION}. The first {view.NUM_PLANES * NUM_CARDS} are {view.NUM_PLANES}
planes of {NUM_CARDS} cards and reshape to `({view.NUM_PLANES}, 4, 13)`; `gin_env.view.PLANE` and `SCALAR` hold where
each field begins.

{_planes(view.PLANES, view.PLANE)}

{_scalars(view.SCALARS, view.SCALAR)}

## Where the rules are manual

Numbers {view.OBSERVATION_SIZE} to {view.MANUAL_OBSERVATION_SIZE - 1} follow (`MANUAL_PLANE`, `MANUAL_SCALAR`).

{_planes(view.MANUAL_PLANES, view.MANUAL_PLANE)}

{_scalars(view.MANUAL_SCALARS, view.MANUAL_SCALAR)}

## The mask

`engine.legal(tables)` and `look` write it: (N, {actions.NUM_ACTIONS}) int8, or (N, {actions.NUM_MANUAL_ACTIONS}) where
the rules are manual; 1 for each legal action, all zero where the seat is not to move.

## The hidden state

`gin_env.view.state(tables)`. {_plain(summary)} {_plain(never)}

{_plain(returns)}
"""


def _tables() -> str:
    return f"""
# Tables

{_plain((inspect.getdoc(tables) or "").partition(chr(10) * 2)[2])}

`engine.new_tables(rules, N)` deals N of them. Players never see them; what they see is on the page
[Observations](observations.md), with the numbers of phases and endings.

{_fields(tables.TABLE_FIELDS)}

The field `rules` is a record of its own, with the fields of [Rules](rules/index.md) as numbers:
{", ".join(_code(name) for name in RULES_DTYPE.names or ())}. What does not exist is -1.
"""


# --------------------------------------------------------------------------------------------------------- training


def _docstrings(kind: type) -> dict[str, str]:
    """Returns what stands below each field in the source of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: _plain(text.value.value)
        for field, text in pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _settings(kind: type[RunConfig], base: type | None = None) -> str:
    """Returns the table of a config's own fields: those that ``base`` has not."""
    known = {field.name for field in dataclasses.fields(base)} if base else set()
    hints, meanings = get_type_hints(kind), _docstrings(kind)
    rows = []
    for field in dataclasses.fields(kind):
        if field.name not in known:
            hint, default = hints[field.name], getattr(kind(), field.name)
            rows.append((_code(field.name), _hint(hint), _code(_default(default)), meanings[field.name]))
    return _table(("setting", "type", "default", "meaning"), rows)


def _hint(hint: Any) -> str:
    words = {int: "whole number", float: "number", bool: "switch", str: "text"}
    if get_origin(hint) is Literal:
        return " or ".join(_code(choice) for choice in get_args(hint))
    return words.get(hint) or ("list of names" if get_origin(hint) is tuple else "table of name = share")


def _default(value: Any) -> str:
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}".replace(",", "_") if isinstance(value, int) else str(value) or '""'


def _training() -> str:
    algorithms = [
        f"## {name}\n\n`ginrummy train {name}`. {_plain((inspect.getdoc(kind) or '').partition(chr(10))[0])}\n\n"
        + _settings(kind, RunConfig)
        for name, kind in CONFIGS.items()
    ]
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, meaning in GLOSSARY.items():
        groups.setdefault(name.partition("/")[0], []).append((_code(name), meaning))
    scalars = [f"### {name}\n\n" + _table(("scalar", "meaning"), rows) for name, rows in groups.items()]
    return "\n\n".join(
        [
            f"""
# Training

A run is a folder: `config.json` with its settings, `checkpoint.safetensors` from which the same command goes on,
`best.safetensors` with the network that evaluated best, `metrics.jsonl` and TensorBoard files with its scalars, and
`{LOCK}`, which names the process that trains in it. `ginrummy runs` lists runs and compares them, and `ginrummy export`
makes a bot of one.

A recipe is a TOML file of settings (`experiments/recipes`); a setting is an option of the command, too, with dashes
for underscores. `algorithm` in a recipe says what it is for, `ppo` where it is not given.

## Settings of every run
""",
            _settings(RunConfig),
            *algorithms,
            """
## Scalars

What a run tells, at each entry of its log. The step is the number of the learner's decisions, all seats counted.
A unit of reward is `points_scale` points.
""",
            *scalars,
        ]
    )


# ---------------------------------------------------------------------------------------------------------- players


def _players() -> str:
    return "\n\n".join(
        [
            f"""
# Players

The players that come with the library, and the rule of each. `ginrummy agents` lists them, `agents.make("greedy")`
makes one, and wherever a player is asked for it can be written as text (`agents.make`): a name, alone or with options
after a colon, such as `greedy:knock=5,late_knock=2`. The folder of an exported bundle is a player too, and so is that
of a training run (`runs/quick`), whose last checkpoint plays, or one of its checkpoint files.

{_list(f"[{name}](#{name}): {_plain(base.describe(name))}" for name in base.names())}
""",
            *(_player(name) for name in base.names()),
            f"""
## Players of Rummy40

`ginrummy agents --game rummy40` lists them, and `agents.make("greedy", game="rummy40")` makes one. They play with two
players and with four, under all rules.

{_list(f"[{name}](#{name}-of-rummy40): {_plain(base.describe(name, 'rummy40'))}" for name in base.names("rummy40"))}
""",
            *(_player(name, "rummy40") for name in base.names("rummy40")),
        ]
    )


def _player(name: str, game: str = "gin") -> str:
    """Returns a player's section: its rule, which is the docstring up to the first heading, and its options."""
    made = base.factory(name, game)
    rule = re.split(
        r"^(?:Args|Attributes|Returns|Raises):$", inspect.getdoc(made) or "", maxsplit=1, flags=re.MULTILINE
    )
    parts = [f"## {name}" if game == "gin" else f"### {name} of Rummy40", _prose(rule[0])]
    meanings = _attributes(made, "Args")
    options = [one for one in inspect.signature(made).parameters.values() if one.name in meanings]
    if options:
        rows = ((_code(one.name), _code(one.default), meanings[one.name]) for one in options)
        parts.append(_table(("option", "default", "meaning"), rows))
    return "\n\n".join(parts)


def _prose(text: str) -> str:
    """Docstring text of several paragraphs as Markdown: items of lists are a line each, indented blocks stay."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if not block.startswith("    "):
            block = "\n".join(_plain(item) for item in re.split(r"\n(?=- )", block))
        blocks.append(block)
    return "\n\n".join(blocks)


# ------------------------------------------------------------------------------------------------------------ rules


def _choices(field: str, kind: Any) -> tuple[str, str]:
    """Returns type and values of a field of the rules."""
    if get_origin(kind) is Literal:
        return "choice", ", ".join(_code(value_text(choice)) for choice in get_args(kind))
    kinds = get_args(kind) or (kind,)
    words = {int: "whole number", bool: "switch", str: "text", type(None): "`none`"}
    name = " or ".join(words[one] for one in kinds)
    if field in RANGES:
        return name, "{} to {:,}".format(*RANGES[field])
    return name, "`false`, `true`" if kind is bool else "any"


def _rules() -> str:
    meanings, hints, default = _attributes(Rules), get_type_hints(Rules), Rules()
    fields = _table(
        ("field", "type", "values", "default", "meaning"),
        (
            (_code(name), *_choices(name, kind), _code(value_text(getattr(default, name))), meanings[name])
            for name, kind in hints.items()
        ),
    )
    rows = []
    for name in hints:
        if name != "name":
            values = [value_text(getattr(rules, name)) for rules in PRESETS.values()]
            rows.append((_code(name), *(value if value == values[0] else f"**{value}**" for value in values)))
    presets = _table(("field", *(f"[{name}]({name}.md)" for name in PRESETS)), rows)
    return f"""
# Rules

Every number and choice is a field of `gin_env.Rules`. A preset is a `Rules` object with a name; four follow public rule
pages and two reproduce another library. Wherever rules are asked for, in Python and on the command line, they can be
written as text (`gin_env.as_rules`):

| text | rules |
|---|---|
| `luciano` | a preset |
| `plus20:target=50,oklahoma=true` | a preset with changes |
| `experiments/rules/house.toml` | a TOML file |

Text begins with a preset's name; `none`, `true` and `false` are written so. `ginrummy rules TEXT` prints the rules
point by point, and `Rules.text` gives the text back.

## The presets side by side

What differs from `{default.name}` is bold.

{presets}

## The fields

{fields}

Some combinations cannot be played: `double_spades` needs `oklahoma`, `swap_cap` needs `rediscard`, `layoffs=best`
chooses the defender's melds itself and needs `defender_melds=auto`, and more cards than `stock_floor` must be left in
the stock after the deal. `Rules` says so.

## House rules

A TOML file of fields, and optionally `preset`, whose other fields they keep. `experiments/rules/{HOUSE.name}`:

```toml
{HOUSE.read_text(encoding="utf-8").strip()}
```
"""


def _preset(name: str) -> str:
    source, rules = SOURCES[name], PRESETS[name]
    points = describe(rules)
    marks = [mark for mark in DECISIONS if any(point.decision == mark for point in points)]
    silent = {
        "page": "Where the rule page is silent or leaves a choice.",
        "library": "Where the library is silent, or plays single hands only.",
    }
    parts = [
        f"# {name}",
        f"{source.game[0].upper()}{source.game[1:]}.\n\nSource: {source.title}.",
        f"    ginrummy rules {name}\n    ginrummy match greedy random --rules {name}"
        if not rules.manual
        else f"    ginrummy rules {name}",
        "## Point by point",
        _list(f"{mark}: {DECISIONS[mark]}" for mark in marks),
        _table(("point", "rule", "by"), ((point.title, point.text, point.decision) for point in points)),
        "## What we decided",
        silent[source.kind],
        _list(
            f"**{point.title}**: {point.text}" + (f" *{point.reason}*" if point.reason else "")
            for point in points
            if point.decision == "ours"
        ),
    ]
    if source.options:
        parts += ["## Options", _options(source)]
    if source.differences:
        parts += ["## Differences", _list(source.differences)]
    parts += ["## How hands are scored", _examples(name)]
    return "\n\n".join(parts)


def _options(source: Source) -> str:
    return _table(
        ("option", "rules", "by"),
        ((option.meaning, _code(option.rules), option.decision) for option in source.options),
    )


# -------------------------------------------------------------------------------------------------- worked examples


class Hand(NamedTuple):
    """A hand in which the non-dealer knocks in its first turn."""

    about: str
    upcard: str  # refused by both
    knocker: str  # eleven cards, the last of them drawn from the stock
    thrown: str | None  # None declares big gin
    defender: str


_MELDS, _DEFENCE = "4S 5S 6S 9H 9D 9C", "JS JH JD QS QH QD 7S 8S"
_HANDS = (
    Hand("a knock", "TC", f"{_MELDS} AD 2C 3H 4D QC", "QC", "JS JH JD KC QH 8D 7S 8S 2S 3D"),
    Hand("an undercut", "TC", f"{_MELDS} AD 2C 3H 4D QC", "QC", f"{_DEFENCE} 2S 3D"),
    Hand("equal deadwood", "TC", f"{_MELDS} AD 2C 3H 4D QC", "QC", f"{_DEFENCE} 3D 7C"),
    Hand("gin", "TC", f"{_MELDS} KS KH KD KC QC", "QC", f"{_DEFENCE} 2S 3D"),
)
_BIG_GIN = Hand("big gin", "TC", f"{_MELDS} KS KH KD KC 7S", None, "JS JH JD QS QH QD AS 8S 2S 3D")
_LIMITED = f"3S {_MELDS} AD 2C 3H QC"
_OKLAHOMA = (
    Hand("a knock, upcard 7D", "7D", _LIMITED, "QC", "JS JH JD 8H 8D 8C KD QH 2S 3D"),
    Hand("a knock, upcard 7S", "7S", _LIMITED, "QC", "JS JH JD 8H 8D 8C KD QH 2S 3D"),
    Hand("gin, upcard AS", "AS", f"{_MELDS} KS KH KD KC QC", "QC", f"{_DEFENCE} 2S 3D"),
)


def _examples(name: str) -> str:
    rules = PRESETS[name]
    hands = [*_HANDS] if rules.big_gin_bonus is None else [*_HANDS, _BIG_GIN]
    parts = [
        "The non-dealer draws its eleventh card from the stock and knocks at once. The engine played these hands"
        + (", both players laying what leaves least." if rules.manual else "."),
        _list(_example(rules, hand) for hand in hands),
    ]
    for option in SOURCES[name].options:
        if "oklahoma" in option.rules:
            parts += [f"`{option.rules}`:", _list(_example(as_rules(option.rules), hand) for hand in _OKLAHOMA)]
    return "\n\n".join(parts)


def _example(rules: Rules, hand: Hand) -> str:
    """Plays a hand and tells it."""
    result = engine.result(play_hand(rules, hand))
    assert result is not None
    winners = {None: "nobody scores", 0: f"{result.points} points for the knocker"}
    laid_off = " ".join(filter(None, result.layoffs))
    sides = []
    for seat, cards in enumerate((hand.knocker, hand.defender)):
        gone = " ".join([*result.melds[seat], laid_off if seat else hand.thrown or ""]).split()
        left = " ".join(card for card in cards.split() if card not in gone)
        sides.append(
            f"{', '.join(result.melds[seat])}; " + (f"{left} count {result.deadwood[seat]}" if left else "nothing left")
        )
    return (
        f"**{hand.about}: {winners.get(result.winner, f'{result.points} points for the defender')}** ({result.ending})."
        f" The knocker throws {hand.thrown or 'nothing'} and lays {sides[0]}."
        f" The defender lays {sides[1]}" + (f"; {laid_off} laid off." if laid_off else ".")
    )


def play_hand(rules: Rules, hand: Hand) -> tables.Tables:
    """Plays a hand and returns its table; seat 0 knocks. Where rules are manual both lay what leaves least.

    Raises:
        IllegalAction: If the hand cannot be played so.
    """
    own, other = parse_cards(hand.knocker), parse_cards(hand.defender)
    dealt = [card for pair in zip(own[:-1], other, strict=True) for card in pair]
    head = [*dealt, *parse_cards(hand.upcard), own[-1]]
    table = engine.new_tables(rules, 1)
    engine.deal(table, decks=[head + [card for card in range(NUM_CARDS) if card not in head]], dealers=[1])
    last = actions.BIG_GIN if hand.thrown is None else actions.parse_action(f"knock {hand.thrown}")
    for action in (actions.PASS, actions.PASS, actions.DRAW, last):
        engine.step(table, [action])
    while table["phase"][0] != tables.OVER:
        engine.step(table, [_lay(table)])
    return table


def _lay(table: tables.Tables) -> int:
    """Returns an action of the showdown: what is still to be laid, or pass."""
    hand = table["hands"][0, table["mover"][0]]
    if table["mover"][0] == table["knocking"][0]:
        wanted, on = melds.arrange(np.array([hand])).melds[0], np.zeros(actions.MAX_MELDS, dtype=np.uint64)
    else:
        laid = table["laid"][0, table["knocking"]]
        defence = melds.defend(np.array([hand]), laid, np.array([table["knocked_with"][0] == 0]))
        wanted, on = defence.melds[0], defence.layoffs[0]
    for action in engine.legal_actions(table):
        if actions.MELD <= action < actions.LAYOFF and int(actions.MELDS[action - actions.MELD]) in map(int, wanted):
            return action
        if action >= actions.LAYOFF:
            slot, card = divmod(action - actions.LAYOFF, NUM_CARDS)
            if int(on[slot]) & to_mask([card]):
                return action
    return actions.PASS
