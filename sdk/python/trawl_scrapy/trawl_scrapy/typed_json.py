"""Converts Python values to JSON and back, including types that JSON lacks: bytes, tuples, sets, dates, decimals
and items. Unlike pickle, reading calls nothing but the constructors of items."""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
from collections.abc import Callable
from typing import Any

from itemadapter import ItemAdapter
from scrapy.utils.misc import load_object


class NotWritable(ValueError):
    """A value cannot be written as JSON."""


# The tag, the writer and the reader of each type.
_Coding = tuple[str, Callable[[Any], Any], Callable[[Any], Any]]
_CODINGS: dict[type, _Coding] = {
    bytes: ("$bytes", lambda value: base64.b64encode(value).decode(), lambda text: base64.b64decode(text)),
    tuple: ("$tuple", lambda value: [write(one) for one in value], lambda ones: tuple(read(one) for one in ones)),
    set: ("$set", lambda value: [write(one) for one in value], lambda ones: {read(one) for one in ones}),
    frozenset: ("$frozenset", lambda value: [write(one) for one in value], lambda ones: frozenset(read(one) for one in ones)),
    datetime.datetime: ("$datetime", lambda value: value.isoformat(), datetime.datetime.fromisoformat),
    datetime.date: ("$date", lambda value: value.isoformat(), datetime.date.fromisoformat),
    decimal.Decimal: ("$decimal", str, decimal.Decimal),
}
_READERS = {tag: reader for tag, _, reader in _CODINGS.values()}


def write(value: Any) -> Any:
    """Returns `value` for `json.dumps`. Raises `NotWritable` if any part of it cannot be written."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        # Selectors return subclasses of `str`.
        return str(value)
    if kind is list:
        return [write(one) for one in value]
    if kind is dict:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: write(one) for key, one in value.items()}
        return {"$dict": [[write(key), write(one)] for key, one in value.items()]}
    if kind in _CODINGS:
        tag, writer, _ = _CODINGS[kind]
        return {tag: writer(value)}
    if ItemAdapter.is_item_class(kind):
        return {"$item": _name(kind), "fields": {key: write(one) for key, one in ItemAdapter(value).items()}}
    raise NotWritable(f"{kind.__module__}.{kind.__qualname__} cannot be written as JSON")


def read(value: Any) -> Any:
    """Returns the value written by `write`."""
    if isinstance(value, list):
        return [read(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "$dict" in value:
        return {read(key): read(one) for key, one in value["$dict"]}
    if "$item" in value:
        kind = load_object(value["$item"])
        if not (isinstance(kind, type) and ItemAdapter.is_item_class(kind)):
            raise ValueError(f"{value['$item']} is no class of items")
        return kind(**{key: read(one) for key, one in value["fields"].items()})
    if len(value) == 1 and (tag := next(iter(value))) in _READERS:
        return _READERS[tag](value[tag])
    return {key: read(one) for key, one in value.items()}


def _name(kind: type) -> str:
    if kind.__qualname__ != kind.__name__ or kind.__module__ == "__main__":
        raise NotWritable(f"{kind.__module__}.{kind.__qualname__} cannot be found by its name: define it at the top of a module")
    return f"{kind.__module__}.{kind.__name__}"
