"""The replacement for Scrapy's scheduler, and the middlewares between its engine and the spider."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.http.cookies import CookieJar

from .job import current

logger = logging.getLogger(__name__)

NEAREST_TO_ENGINE = -1_000_000
"""The position among a project's spider middlewares that is nearest to the engine."""


class Scheduler(BaseScheduler):
    """Gives each request to the job that wants it. It never returns any: requests come as pages and tasks."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        return cls(crawler)

    def has_pending_requests(self) -> bool:
        return False

    def next_request(self) -> Request | None:
        return None

    def enqueue_request(self, request: Request) -> bool:
        job = current.get()
        if job is None:
            logger.error("%s is left out: it is wanted outside of any task, as by a handler of `spider_idle`", request)
            return False
        assert self._crawler.request_fingerprinter is not None
        return job.want(request, self._crawler.request_fingerprinter.fingerprint(request).hex())


class Gate:
    """A spider middleware, the one nearest to the engine. It prevents the engine from starting the spider, whose
    start is an ordinary task, and from closing it."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if current.get() is None:
            # This is the engine's own call. A spider whose start has not ended is never idle.
            await self.closing.wait()
            return
        async for one in start:
            yield one

    def process_spider_exception(self, response: Response, exception: Exception) -> Iterable[Any] | None:
        if not isinstance(exception, CloseSpider):
            return None
        logger.warning("the spider asks to be closed (%s), which ends this task alone: `trawl cancel` ends the crawl", exception.reason)
        return []


class StartsOnce:
    """A spider middleware for a whole run, the one nearest to the engine. If the run continues after it was
    stopped, it skips the part of the spider's start that was done."""

    SETTING = "TRAWL_SCRAPY_STARTED"

    def __init__(self, file: Path) -> None:
        self._file, self._started = file, 0
        self.has_failed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StartsOnce:
        middleware = cls(Path(crawler.settings[cls.SETTING]))
        crawler.signals.connect(middleware._closed, signals.spider_closed)
        return middleware

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        done = int(self._file.read_text()) if self._file.exists() else 0
        try:
            async for one in start:
                self._started += 1
                if self._started > done:
                    yield one
        except Exception:
            # Older versions of Scrapy continue as if the start had ended.
            self.has_failed = True
            raise

    def _closed(self) -> None:
        self._file.write_text(str(self._started))


class JarsOfJobs:
    """Replaces the jars of `CookiesMiddleware`. Each job has its own jars, which came with its task."""

    def __getitem__(self, key: Any) -> CookieJar:
        job = current.get()
        return CookieJar() if job is None else job.jars[key]
