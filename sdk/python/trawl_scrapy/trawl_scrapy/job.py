"""One task or page of mode `stream` while it is worked on, and what comes of it."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from contextvars import ContextVar
from typing import Any

from scrapy import Request, Spider

from . import cookies, requests
from .answers import encode
from .frontier import Frontier, NotForTrawl
from .logs import Bounded
from .recipe import Recipe

DONE, FAILED, SKIPPED = 0, 1, 2
# trawl takes recipes of up to a megabyte.
_LONGEST_RECIPE = 1024 * 1024
# So many requests, or bytes of them, a task of a start asks for at most. trawl takes answers of up to 16 MB.
_MOST_STARTED, _MOST_BYTES = 10_000, 8 * 1024 * 1024


class Job:
    """Collects the items, requests, tasks and log entries of one task or page."""

    def __init__(self, id: str, crawl: str, recipe: Recipe, page: dict[str, Any] | None = None) -> None:
        self.id, self.recipe, self.page = id, recipe, page
        # Goes along with its requests: a dead letter that is sent again is of another crawl, and still of this run.
        self.run = recipe.run or digest(crawl, recipe.identity())
        self.jars = cookies.read(recipe.cookies)
        self.items: list[Any] = []
        # The request whose page trawl has downloaded.
        self.downloaded: Request | None = None
        # Requests that cannot travel: they are worked on as part of this one.
        self.local: deque[Request] = deque()
        self._result, self._bytes = DONE, 0
        self._urls: list[dict[str, Any]] = []
        self._tasks: list[dict[str, Any]] = []
        self.log = Bounded()
        self._requested: Counter[tuple[str, bool]] = Counter()

    def end(self, result: int, why: str | None = None) -> None:
        """Notes what becomes of it. A failure stays one."""
        if self._result != FAILED:
            self._result = result
        if why is not None:
            self.log.take({"message": why, "level": 3 if result == FAILED else 5})

    def request(self, request: Request, fingerprint: str, spider: Spider, frontier: Frontier) -> bool:
        """Takes in a request that the spider or a middleware wants made: as a request of trawl's frontier, else as a task, else to be made
        at once. Returns whether it is new, as far as this job knows."""
        self._requested[fingerprint, request.dont_filter] += 1
        if not request.dont_filter and self._requested[fingerprint, False] > 1:
            return False
        unique = self._unique(request, fingerprint)
        try:
            written, jars = requests.write(request, spider), cookies.write(self.jars)
        except ValueError as error:
            spider.logger.debug("%s is made at once, and is no task of its own: %s", request, error)
            self.local.append(request)
            return True
        recipe = self.recipe.for_request(self.run, written, jars)
        try:
            asked, size = self._with_its_jars(frontier, request, written, {**recipe.to_object(), "id": unique})
            self._urls.append({**asked, "unique": unique})
            self._bytes += size
        except NotForTrawl as why:
            spider.logger.debug("%s is a task: %s", request, why)
            self._submit_or_keep(request, recipe.to_json(), unique)
        return True

    def _with_its_jars(
        self, frontier: Frontier, request: Request, written: dict[str, Any], data: dict[str, Any]
    ) -> tuple[dict[str, Any], int]:
        # What the request says of cookies counts for it and what follows from it, and for no other of this job.
        own, self.jars = self.jars, cookies.read(data.get("cookies", []))
        try:
            return frontier.request(request, written, data)
        finally:
            self.jars = own

    def _submit_or_keep(self, request: Request, recipe: str, unique: str) -> None:
        if len(recipe.encode(errors="replace")) > _LONGEST_RECIPE:
            self.local.append(request)
        else:
            self._submit(recipe, unique, request.priority)

    @property
    def is_full(self) -> bool:
        """Whether what is still to start had better be a task of its own."""
        return len(self._urls) + len(self._tasks) >= _MOST_STARTED or self._bytes >= _MOST_BYTES

    def go_on_from(self, started: int) -> None:
        """Leaves the rest of a start, after so many requests and items, to another task."""
        self._submit(self.recipe.starting_from(self.run, started).to_json(), digest(self.run, "start", str(started)), 0)

    def _submit(self, recipe: str, unique: str, priority: int) -> None:
        self._tasks.append({"recipe": recipe, "unique": unique, "priority": priority})
        self._bytes += len(recipe)

    def _unique(self, request: Request, fingerprint: str) -> str:
        # A run makes a request once. With `dont_filter` it makes each that it is asked for once, however often this job is tried.
        if not request.dont_filter:
            return digest(self.run, fingerprint)
        return digest(self.run, fingerprint, self.id, str(self._requested[fingerprint, True]))

    def answer(self) -> dict[str, Any]:
        """The answer to the worker."""
        # Only what is done yields anything. So a callback that fails halfway is done as far as it came, as in Scrapy; a start is not.
        has_yielded = bool(self.items or self._urls or self._tasks)
        is_start = self.recipe.request is None
        is_done = has_yielded and (self._result == SKIPPED or not is_start)
        # Items of a page have ids by their place, which are to be the same at each attempt; pipelines may have them in any order.
        items = sorted(self.items, key=encode) if self.page else self.items
        result = DONE if is_done else self._result
        return {"result": result, "items": items, "urls": self._urls, "tasks": self._tasks, "logs": self.log.entries()}


def digest(*parts: str) -> str:
    """128 bits as hexadecimal digits."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "backslashreplace")
        hashed.update(b"%d:" % len(encoded) + encoded)
    return hashed.hexdigest()


current: ContextVar[Job | None] = ContextVar("job", default=None)
"""The job on whose behalf code runs. It goes along into whatever that code starts."""
