"""Rules as data, whatever the game: fields that are checked, text and files, rows of numbers for kernels."""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

Ranges = Mapping[str, tuple[int, int]]


def _choices(kind: Any) -> tuple[tuple[Any, ...], tuple[type, ...]]:
    """The values that a field's type names one by one, and the types of which it takes any value."""
    if get_origin(kind) is Literal:
        return get_args(kind), ()
    values: tuple[Any, ...] = ()
    kinds: tuple[type, ...] = ()
    for part in get_args(kind) or (kind,):
        if get_origin(part) is Literal:
            values += get_args(part)
        else:
            kinds += (part,)
    return values, kinds


def check_fields(rules: Any, ranges: Ranges) -> None:
    """Checks the types of all fields of a dataclass of rules, then the ranges of its numbers.

    Raises:
        TypeError: If a field has the wrong type.
        ValueError: If a value is none of those that can be played.
    """
    for field, kind in get_type_hints(type(rules)).items():
        value = getattr(rules, field)
        values, kinds = _choices(kind)
        # By type as well: True would otherwise pass for the seat 1.
        if type(value) in kinds or any(type(value) is type(choice) and value == choice for choice in values):
            continue
        if values:
            raise ValueError(f"rules: {field} is {value!r}; expected one of {values}")
        wanted = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
        raise TypeError(f"rules: {field} is {value!r}; expected {wanted}")
    for field, (low, high) in ranges.items():
        value = getattr(rules, field)
        if value is not None and not low <= value <= high:
            raise ValueError(f"rules: {field} is {value}; expected {low} to {high}")


def check_names(kind: Any, fields: Collection[str]) -> None:
    """Raises a ValueError if a name is not that of a field of a dataclass."""
    names = [field.name for field in dataclasses.fields(kind)]
    for name in fields:
        if name not in names:
            raise ValueError(f"rules: unknown field {name!r}; expected some of {', '.join(sorted(names))}")


def changes(rules: Any, base: Any) -> list[str]:
    """The fields in which rules differ from others, the name apart."""
    names = [field.name for field in dataclasses.fields(rules) if field.name != "name"]
    return [name for name in names if getattr(rules, name) != getattr(base, name)]


def fingerprint(fields: Mapping[str, Any]) -> str:
    """Sixteen hex digits that differ whenever a field differs, the name apart."""
    fields = {name: value for name, value in fields.items() if name != "name"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


# -------------------------------------------------------------------------------------------------------------- text


def value_text(value: Any) -> str:
    """Returns a field's value as `read_text` reads it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def rules_text(rules: Any, base: Any) -> str:
    """Returns the name of a preset and what differs from it, such as ``plus20:oklahoma=true,target=50``."""
    changed = [f"{name}={value_text(getattr(rules, name))}" for name in changes(rules, base)]
    return base.name + (":" + ",".join(changed) if changed else "")


def read_text(text: str, presets: Collection[str]) -> tuple[str, dict[str, Any]]:
    """Returns the preset's name and the changed fields of what `rules_text` writes.

    Raises:
        ValueError: If it has another form or names no preset.
    """
    name, _, changed = text.partition(":")
    if name not in presets:
        raise ValueError(f"{name!r} is no preset; expected one of {', '.join(presets)}, or a .toml file")
    fields: dict[str, Any] = {}
    for change in filter(None, changed.split(",")):
        field, equals, value = change.partition("=")
        if not equals:
            raise ValueError(f"rules {text!r}: {change!r} is not of the form field=value")
        if field.strip() in fields:
            raise ValueError(f"rules {text!r}: {field.strip()} is given twice")
        fields[field.strip()] = _read_value(value.strip())
    return name, fields


def _read_value(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text)
    except ValueError:
        return text


def load_toml(path: str | Path, default: str, preset: Callable[..., Any]) -> Any:
    """Reads rules from a TOML file: fields, and optionally ``preset``, whose other fields they keep.

    Args:
        path: The file. TOML has no None; a field that may be None is left out by the text ``"none"``.
        default: Name of the preset where the file names none.
        preset: Makes rules of a preset's name and fields. The rules' name is the file's unless given.

    Raises:
        ValueError: If the file is not TOML or its rules cannot be played.
        OSError: If it cannot be read.
    """
    path = Path(path)
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    base = fields.pop("preset", default)
    fields = {"name": path.stem} | {name: None if value == "none" else value for name, value in fields.items()}
    try:
        return preset(base, **fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


# -------------------------------------------------------------------------------------------------------------- rows


def to_row(rules: Any, dtype: np.dtype, codes: Mapping[str, int]) -> np.ndarray:
    """Returns rules as kernels read them: a (1,) array of ``dtype``, words by their codes, None as -1."""
    row = np.zeros(1, dtype=dtype)
    for name in dtype.names or ():
        value = getattr(rules, name)
        if value is None:
            value = -1
        elif isinstance(value, str):
            value = codes[value]
        row[name] = value
    return row


def from_numbers(kind: Any, row: Mapping[str, int], codes: Mapping[str, int]) -> dict[str, Any]:
    """Returns the fields of a dataclass of rules, the name apart, from the numbers that `to_row` wrote.

    Raises:
        ValueError: If a number stands for no value of its field.
    """
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if name == "name":
            continue
        code = row[name]
        values, kinds = _choices(hint)
        if values:
            words = [word for word in values if codes.get(word, word) == code]
            if not words:
                raise ValueError(f"rules: {name} is coded as {code}, which stands for none of {values}")
            fields[name] = words[0]
        elif type(None) in kinds and code < 0:
            fields[name] = None
        else:
            fields[name] = bool(code) if bool in kinds else code
    return fields
