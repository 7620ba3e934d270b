"""A spider that is open in this process and works on tasks and pages."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError, HttpErrorMiddleware
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.response import response_status_message
from twisted.python.failure import Failure

from . import failures, pages, project, requests
from .components import NEAREST_TO_ENGINE, Gate, JarsOfJobs
from .handover import Handover, go_on
from .items import Items
from .job import FAILED, SKIPPED, Job, current
from .recipe import InvalidRecipe, Recipe

# Settings that make no sense if many processes share a run, and those that install trawl's parts.
_OVERRIDES: dict[str, Any] = {
    "SCHEDULER": "trawl_scrapy.components.Scheduler",
    "FEEDS": {},
    "JOBDIR": None,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "CLOSESPIDER_ERRORCOUNT": 0,
    "CLOSESPIDER_ITEMCOUNT": 0,
    "CLOSESPIDER_PAGECOUNT": 0,
    "CLOSESPIDER_PAGECOUNT_NO_ITEM": 0,
    "CLOSESPIDER_TIMEOUT": 0,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
}


class Crawl:
    """The spider of one run, with its engine, middlewares and pipelines."""

    def __init__(self, process: AsyncCrawlerProcess, recipe: Recipe) -> None:
        settings = process.settings.copy()
        settings.setdict(recipe.settings, priority="cmdline")
        try:
            spider_class = process.spider_loader.load(recipe.spider)
        except KeyError:
            raise InvalidRecipe(project.unknown(recipe.spider, process.spider_loader)) from None
        self._crawler = Crawler(spider_class, settings)
        self._crawler.settings.setdict(_OVERRIDES, priority="cmdline")
        middlewares = dict(self._crawler.settings.getdict("SPIDER_MIDDLEWARES"))
        self._crawler.settings.set("SPIDER_MIDDLEWARES", {**middlewares, Gate: NEAREST_TO_ENGINE}, priority="cmdline")
        for handler, signal in (
            (self._scraped, signals.item_scraped),
            (self._error, signals.spider_error),
            (self._error, signals.item_error),
        ):
            self._crawler.signals.connect(handler, signal)
        self._opened = asyncio.Event()
        self._crawler.signals.connect(self._opened.set, signals.engine_started)
        self._items = Items(self._crawler)
        self._running = process.crawl(self._crawler, **recipe.args)
        self._retried = {int(status) for status in self._crawler.settings.getlist("RETRY_HTTP_CODES")}
        self._handover: Handover | None = None
        self.jobs = 0

    @property
    def is_over(self) -> bool:
        """Whether the spider was closed, by `close` or by a part of Scrapy."""
        return self._running.done()

    async def open(self) -> None:
        """Waits until the spider is open. Raises the error that prevented it."""
        opened = asyncio.ensure_future(self._opened.wait())
        await asyncio.wait([opened, self._running], return_when=asyncio.FIRST_COMPLETED)
        if not self._opened.is_set():
            opened.cancel()
            await self._running
            raise RuntimeError("the spider was closed before it was open")
        if cookies := self._crawler.get_downloader_middleware(CookiesMiddleware):
            cookies.jars = JarsOfJobs()  # type: ignore[assignment]

    async def close(self) -> None:
        """Closes the spider, as Scrapy does on SIGTERM."""
        if gate := self._crawler.get_spider_middleware(Gate):
            gate.closing.set()
        await self._crawler.stop_async()
        await asyncio.wait([self._running])

    async def work(self, job: Job) -> None:
        """Does the work of the job: the spider's start, or one of its requests, whose page trawl may have
        downloaded.

        Raises an exception if the spider is closed meanwhile."""
        self.jobs += 1
        # A separate task, so that nothing else runs on the job's behalf.
        working = asyncio.ensure_future(self._work(job))
        try:
            await asyncio.wait([working, self._running], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise RuntimeError("the spider was closed while it worked")
            working.result()
        finally:
            working.cancel()
            self.jobs -= 1

    async def _work(self, job: Job) -> None:
        current.set(job)
        # This logs for the first job which requests trawl downloads.
        handover = self._handover = self._handover or Handover(self._crawler)
        if job.recipe.request is None:
            await self._start(job, handover)
        else:
            assert self._crawler.spider is not None
            request = requests.read(job.recipe.request, self._crawler.spider)
            job.downloaded = request if job.page else None
            if job.recipe.prepared:
                job.prepared.append(request)
            await self._make(request, job)
        await handover.all(job)
        while job.local:
            await self._make(job.local.popleft(), job)
            await handover.all(job)

    async def _start(self, job: Job, handover: Handover) -> None:
        engine = self._crawler.engine
        start = await engine.scraper.spidermw.process_start()
        assert start is not None
        number = 0
        async for one in start:
            if job.is_full:
                job.go_on_from(number)
                return
            number += 1
            if number <= job.recipe.start:
                continue
            if isinstance(one, Request):
                engine.crawl(one)
                await handover.all(job)
            else:
                await engine.scraper.start_itemproc_async(one, response=None)

    async def _make(self, request: Request, job: Job) -> None:
        """Makes a request and passes on its result, as the engine does with requests of its scheduler."""
        result: Response | Request | Failure
        try:
            result = await self._download(request, job)
        except Exception as error:
            result = Failure()  # type: ignore[no-untyped-call]
            if request.errback is None:
                job.end(FAILED if not isinstance(error, IgnoreRequest) else SKIPPED, f"{request}: {error}")
        if isinstance(result, Response):
            result.request = result.request or request
            if request.errback is None and self._is_ignored(result):
                job.end(FAILED if result.status in self._retried else SKIPPED, f"{request}: {response_status_message(result.status)}")
        await go_on(self._crawler, request, result)

    async def _download(self, request: Request, job: Job) -> Response | Request:
        downloader = self._crawler.engine.downloader
        if request is not job.downloaded or job.page is None:
            fetched: Response | Request = await maybe_deferred_to_future(downloader.fetch(request))
            return fetched
        page = job.page

        async def downloaded(_: Request) -> Response:
            if failure := page.get("failure"):
                raise failures.exception(failure)
            return pages.response(page, request)

        return await downloader.middleware.download_async(downloaded, request)

    def _is_ignored(self, response: Response) -> bool:
        """Whether no callback sees the response because of its status."""
        if middleware := self._crawler.get_spider_middleware(HttpErrorMiddleware):
            try:
                middleware.process_spider_input(response)
            except HttpError:
                return True
        return False

    def _scraped(self, item: Any) -> None:
        if job := current.get():
            job.items.append(self._items.fields(item))

    def _error(self) -> None:
        if job := current.get():
            job.end(FAILED)
