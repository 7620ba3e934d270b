"""From a request that a spider wants to a request of trawl's frontier, a task, or what a middleware has in its place."""

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
    """Hands over what the jobs of a spider want."""

    def __init__(self, crawler: Crawler) -> None:
        """The spider is open, and has downloaded nothing yet."""
        assert crawler.engine is not None and crawler.spider is not None
        self._crawler, self._spider = crawler, crawler.spider
        self._frontier = Frontier(crawler)
        self._stages = Stages(crawler.engine.downloader.middleware)
        self._usual = self._stages.usual()

    async def all(self, job: Job) -> None:
        """Hands over whatever a job wants by now, and what follows from that at once."""
        while job.wanted:
            await self._hand_over(job.wanted.popleft(), job)
            # Others go on, even if a middleware has another request in place of each.
            await asyncio.sleep(0)

    async def _hand_over(self, wanted: Wanted, job: Job) -> None:
        """As a request of trawl's frontier, if trawl can make it as Scrapy would; as a task, if it can travel; else it is made at once."""
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
                # It fails by itself then, and is tried again as tasks are.
                logger.debug("%s is a task: a middleware fails at it: %r", request, error)
                job.submit(request, as_it_is, wanted.unique)

    async def _is_prepared(self, sent: Request) -> bool:
        """Has the middlewares look at a request. Returns whether it is to be made then: one of them may have something in its place, which goes on at once.
        Raises what one of them has raised, if no errback is to have that."""
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
    """What the engine does with what has come of a request."""
    engine = crawler.engine
    assert engine is not None
    if isinstance(result, Request):
        # A redirect, or another try.
        engine.crawl(result)
        return
    if isinstance(result, Response):
        result.request = result.request or request
        crawler.signals.send_catch_log(signals.response_received, response=result, request=result.request, spider=crawler.spider)
    await maybe_deferred_to_future(engine.scraper.enqueue_scrape(result, request))
