"""A task or page of mode `stream` in progress, and its results."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from scrapy import Request

from . import cookies
from .answers import encode
from .logs import Bounded
from .recipe import Recipe

logger = logging.getLogger(__name__)

DONE, FAILED, SKIPPED = 0, 1, 2
# trawl accepts recipes of up to a megabyte.
_LONGEST_RECIPE = 1024 * 1024
# Maximum number and bytes of the requests of one task of a start. trawl accepts answers of up to 16 MB.
_MOST_STARTED, _MOST_BYTES = 10_000, 8 * 1024 * 1024


class Wanted(NamedTuple):
    """A request to be handed over."""

    request: Request
    unique: str
    cookies: list[Any]


class Job:
    """Collects the items, requests, tasks and log entries of one task or page."""

    def __init__(self, id: str, crawl: str, recipe: Recipe, page: dict[str, Any] | None = None) -> None:
        self.id, self.recipe, self.page = id, recipe, page
        # Travels with its requests: a replayed dead letter belongs to another crawl, but still to this run.
        self.run = recipe.run or digest(crawl, recipe.identity())
        self.jars = cookies.read(recipe.cookies)
        self.items: list[Any] = []
        # The request whose page trawl has downloaded, or failed to download.
        self.downloaded: Request | None = None
        # Requests that are wanted and not yet handed over.
        self.wanted: deque[Wanted] = deque()
        # The request that is being handed over.
        self.handing_over: Request | None = None
        # Requests that cannot travel, which are made as part of this job.
        self.local: deque[Request] = deque()
        # Requests that the middlewares have already processed.
        self.prepared: list[Request] = []
        self._result, self._bytes = DONE, 0
        self._urls: list[dict[str, Any]] = []
        self._tasks: list[dict[str, Any]] = []
        self.log = Bounded()
        self._requested: Counter[tuple[str, bool]] = Counter()

    def end(self, result: int, why: str | None = None) -> None:
        """Sets the result, unless it is already a failure."""
        if self._result != FAILED:
            self._result = result
        if why is not None:
            self.log.take({"message": why, "level": 3 if result == FAILED else 5})

    def want(self, request: Request, fingerprint: str) -> bool:
        """Adds a request that the spider or a middleware wants. Returns whether it is new to this job."""
        self._requested[fingerprint, request.dont_filter] += 1
        if not request.dont_filter and self._requested[fingerprint, False] > 1:
            return False
        try:
            self.wanted.append(Wanted(request, self._unique(request, fingerprint), cookies.write(self.jars)))
        except ValueError as error:
            logger.debug("%s is made at once: %s", request, error)
            self.local.append(request)
        return True

    @contextmanager
    def with_jars(self, written: list[Any]) -> Iterator[None]:
        """Uses the cookie jars of a request for it and what follows from it, and for no other request of this job."""
        own, self.jars = self.jars, cookies.read(written)
        try:
            yield
        finally:
            self.jars = own

    def is_prepared(self, request: Request) -> bool:
        """Whether the middlewares have already processed a request."""
        return any(request is one for one in self.prepared)

    def ask(self, asked: dict[str, Any], size: int) -> None:
        """Adds a request of trawl's frontier, of `size` bytes."""
        self._urls.append(asked)
        self._bytes += size

    def submit(self, request: Request, recipe: Recipe, unique: str) -> None:
        """Submits a request as a task, or makes it as part of this one if the recipe is too long."""
        text = recipe.to_json()
        if len(text.encode(errors="replace")) > _LONGEST_RECIPE:
            self.make_at_once(request, recipe.prepared)
        else:
            self._submit(text, unique, request.priority)

    def make_at_once(self, request: Request, is_prepared: bool) -> None:
        """Makes a request as part of this job."""
        self.local.append(request)
        if is_prepared:
            self.prepared.append(request)

    @property
    def is_full(self) -> bool:
        """Whether the rest of a start should be a separate task."""
        return len(self._urls) + len(self._tasks) >= _MOST_STARTED or self._bytes >= _MOST_BYTES

    def go_on_from(self, started: int) -> None:
        """Submits the rest of a start, after this many requests and items, as another task."""
        self._submit(self.recipe.starting_from(self.run, started).to_json(), digest(self.run, "start", str(started)), 0)

    def _submit(self, recipe: str, unique: str, priority: int) -> None:
        self._tasks.append({"recipe": recipe, "unique": unique, "priority": priority})
        self._bytes += len(recipe)

    def _unique(self, request: Request, fingerprint: str) -> str:
        # A run makes each request once. With `dont_filter`, each occurrence is made once, however often this job is
        # retried.
        if not request.dont_filter:
            return digest(self.run, fingerprint)
        return digest(self.run, fingerprint, self.id, str(self._requested[fingerprint, True]))

    def answer(self) -> dict[str, Any]:
        """Returns the answer to the worker."""
        # Only work that is done yields anything. Therefore, as in Scrapy, a callback that fails half-way counts as
        # done; a start does not.
        has_yielded = bool(self.items or self._urls or self._tasks)
        is_start = self.recipe.request is None
        is_done = has_yielded and (self._result == SKIPPED or not is_start)
        # The ids of a page's items depend on their order, which must be the same at each attempt; pipelines may change
        # the order.
        items = sorted(self.items, key=encode) if self.page else self.items
        result = DONE if is_done else self._result
        return {"result": result, "items": items, "urls": self._urls, "tasks": self._tasks, "logs": self.log.entries()}


def digest(*parts: str) -> str:
    """Returns a hash of 128 bits in hexadecimal."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "backslashreplace")
        hashed.update(b"%d:" % len(encoded) + encoded)
    return hashed.hexdigest()


current: ContextVar[Job | None] = ContextVar("job", default=None)
"""The job on whose behalf code runs. Tasks started by that code inherit it."""
