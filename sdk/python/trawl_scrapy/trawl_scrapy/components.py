"""What takes the place of Scrapy's own scheduler, and what stands between its engine and the spider."""

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
"""The place among a project's spider middlewares."""


class Scheduler(BaseScheduler):
    """Hands each request to the job that wants it. It has none to give: those come as pages and tasks."""

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
    """A spider middleware, the one nearest to the engine. It keeps the engine from asking the spider for its start, which is a task like
    others, and from closing the spider."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if current.get() is None:
            # The engine's own. A spider that has not ended its start is never idle.
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
    """A spider middleware for a whole run, the one nearest to the engine. When the run goes on after it was stopped, it leaves out as much
    of the spider's start as was done."""

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
            # Older versions of Scrapy go on as if the start had ended.
            self.has_failed = True
            raise

    def _closed(self) -> None:
        self._file.write_text(str(self._started))


class JarsOfJobs:
    """Stands for the jars of `CookiesMiddleware`. Each job has its own, which came with its task."""

    def __getitem__(self, key: Any) -> CookieJar:
        job = current.get()
        return CookieJar() if job is None else job.jars[key]
