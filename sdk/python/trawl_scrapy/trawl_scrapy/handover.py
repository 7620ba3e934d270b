"""Turns a request that a spider wants into a request of trawl's frontier, a task, or a middleware's replacement for
it."""

from __future__ import annotations

import asyncio
import logging

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.python.failure import Failure

from . import cookies, requests
from .frontier import Frontier, NotForTrawl
from .job import Job, Wanted
from .stages import HandedOver, Stages

logger = logging.getLogger(__name__)


class Handover:
    """Hands over the requests that a spider's jobs want."""

    def __init__(self, crawler: Crawler) -> None:
        """The spider must be open, and must not have downloaded anything."""
        assert crawler.engine is not None and crawler.spider is not None
        self._crawler, self._spider = crawler, crawler.spider
        self._frontier = Frontier(crawler)
        self._stages = Stages(crawler.engine.downloader.middleware)
        self._usual = self._stages.usual()

    async def all(self, job: Job) -> None:
        """Hands over all requests that a job wants, including those that follow from them at once."""
        while job.wanted:
            await self._hand_over(job.wanted.popleft(), job)
            # Lets other tasks run, even if a middleware replaces every request by another one.
            await asyncio.sleep(0)

    async def _hand_over(self, wanted: Wanted, job: Job) -> None:
        """Hands a request over as a request of trawl's frontier if trawl can make it as Scrapy would, or else as a
        task if it can travel. Otherwise it is made at once."""
        request = wanted.request
        try:
            written = requests.write(request, self._spider)
        except ValueError as error:
            logger.debug("%s is made at once, and is no task of its own: %s", request, error)
            return job.make_at_once(request, is_prepared=False)
        as_it_is = job.recipe.for_request(job.run, written, wanted.cookies)
        try:
            self._frontier.check(request, written)
        except NotForTrawl as why:
            logger.debug("%s is a task: %s", request, why)
            return job.submit(request, as_it_is, wanted.unique)
        sent = request.copy()
        with job.with_jars(wanted.cookies):
            try:
                if await self._is_prepared(sent):
                    self._ask(sent, wanted.unique, job)
            except Exception as error:
                # As a task it fails by itself, and is retried as tasks are.
                logger.debug("%s is a task: a middleware fails at it: %r", request, error)
                job.submit(request, as_it_is, wanted.unique)

    async def _is_prepared(self, sent: Request) -> bool:
        """Passes a request to the middlewares. Returns whether it is still to be made: a middleware may have
        replaced it by a result, which is passed on at once. Raises a middleware's exception unless an errback gets
        it."""
        result: Response | Request | Failure
        try:
            result = await self._stages.prepare(sent)
        except HandedOver:
            return True
        except Exception as error:
            if sent.errback is None and not isinstance(error, IgnoreRequest):
                raise
            result = Failure()  # type: ignore[no-untyped-call]
        await go_on(self._crawler, sent, result)
        return False

    def _ask(self, sent: Request, unique: str, job: Job) -> None:
        try:
            written = requests.write(sent, self._spider, self._usual)
            recipe = job.recipe.for_request(job.run, written, cookies.write(job.jars), prepared=True)
        except ValueError as error:
            logger.debug("%s is made at once, and is no task of its own: %s", sent, error)
            return job.make_at_once(sent, is_prepared=True)
        try:
            self._frontier.check(sent, written)
            asked, size = self._frontier.ask(sent, {**recipe.to_object(), "id": unique})
            job.ask({**asked, "unique": unique}, size)
        except NotForTrawl as why:
            logger.debug("%s is a task: %s", sent, why)
            job.submit(sent, recipe, unique)


async def go_on(crawler: Crawler, request: Request, result: Response | Request | Failure) -> None:
    """Passes on the result of a request, as the engine does."""
    engine = crawler.engine
    assert engine is not None
    if isinstance(result, Request):
        # A redirect or a retry.
        engine.crawl(result)
        return
    if isinstance(result, Response):
        result.request = result.request or request
        crawler.signals.send_catch_log(signals.response_received, response=result, request=result.request, spider=crawler.spider)
    await maybe_deferred_to_future(engine.scraper.enqueue_scrape(result, request))
