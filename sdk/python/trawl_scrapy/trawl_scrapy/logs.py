"""Writes Python's log to the log of a task."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from scrapy.settings import BaseSettings

Entry = dict[str, Any]
# Maximum number of entries of an answer that trawl keeps, and maximum length of a message.
_MOST, _LONGEST = 1_000, 4_096
# trawl's levels: 1 fatal, 2 panic, 3 error, 4 warn, 5 info, 6 debug, 7 trace.
_LEVELS = ((logging.CRITICAL, 1), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 5), (logging.DEBUG, 6))


class TaskLog(logging.Handler):
    """Passes records from `LOG_LEVEL` on to `take`. Refused records from WARNING on go to standard error."""

    def __init__(self, settings: BaseSettings, take: Callable[[Entry], bool]) -> None:
        # Scrapy's own default is DEBUG, which includes every page and every item.
        is_set = (settings.getpriority("LOG_LEVEL") or 0) > 0
        super().__init__(settings["LOG_LEVEL"] if is_set else logging.INFO)
        self._take = take
        self._otherwise = logging.StreamHandler()
        self._otherwise.setLevel(max(self.level, logging.WARNING))
        formatter = logging.Formatter("[%(name)s] %(message)s")
        self.setFormatter(formatter)
        self._otherwise.setFormatter(formatter)

    def _refused(self, record: logging.LogRecord) -> None:
        if record.levelno >= self._otherwise.level:
            self._otherwise.handle(record)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if not self._take({"message": shortened(self.format(record)), "level": level_of(record.levelno)}):
                self._refused(record)
        except Exception:
            self.handleError(record)


class Bounded:
    """The log of one task. If it is too long, its middle is left out."""

    def __init__(self) -> None:
        self._first: list[Entry] = []
        self._last: deque[Entry] = deque(maxlen=_MOST // 2 - 1)
        self._taken = 0

    def take(self, entry: Entry) -> bool:
        """Adds an entry. Always accepts it."""
        self._taken += 1
        (self._first if len(self._first) < _MOST // 2 else self._last).append(entry)
        return True

    def entries(self) -> list[Entry]:
        """Returns all entries that were kept."""
        left_out = self._taken - len(self._first) - len(self._last)
        gap = [{"message": f"{left_out} entries are left out here", "level": 5}] if left_out else []
        return [*self._first, *gap, *self._last]


def shortened(message: str) -> str:
    """Removes the middle of a long message; the end of a stack trace is the most useful part."""
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST // 4]}\n[...]\n{message[-_LONGEST // 2 :]}"


def level_of(levelno: int) -> int:
    """Returns trawl's level for a level of Python."""
    return next((level for least, level in _LEVELS if levelno >= least), 7)


def install(settings: BaseSettings, take: Callable[[Entry], bool]) -> None:
    """Redirects the log of the whole process to `take`. A `LOG_FILE` of the project is still written, but nothing
    to standard error."""
    if not settings.get("LOG_FILE"):
        settings.set("LOG_ENABLED", False, priority="cmdline")
    handler = TaskLog(settings, take)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(handler.level)
