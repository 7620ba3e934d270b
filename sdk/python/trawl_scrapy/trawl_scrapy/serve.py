"""A handler of mode `stream`: each request of a spider becomes a request of trawl's frontier, or a task. Pages and
tasks come as JSON on standard input, one per line, and are answered as they end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, cast

from scrapy.crawler import AsyncCrawlerProcess

from . import logs, project
from .answers import Answers
from .crawl import Crawl
from .job import FAILED, Job, current
from .recipe import InvalidRecipe, Recipe

# Maximum number of runs with open spiders. Of the idle ones the least recently used is closed.
_OPEN = 8


def serve(folder: str) -> int:
    """Works on pages and tasks until standard input ends. Returns the exit code of the process."""
    answers = Answers()
    try:
        settings = project.enter(folder)
    except project.NoProject as error:
        print(error, file=sys.stderr)
        return 2
    settings.set("TWISTED_REACTOR", "twisted.internet.asyncioreactor.AsyncioSelectorReactor", priority="cmdline")
    settings.set("TWISTED_REACTOR_ENABLED", True, priority="cmdline")
    logs.install(settings, _log)
    process = AsyncCrawlerProcess(settings)
    Server(process, answers).start()
    process.start(stop_after_crawl=False, install_signal_handlers=False)
    return 0


def _log(entry: logs.Entry) -> bool:
    job = current.get()
    return job is not None and job.log.take(entry)


class Server:
    """Accepts pages and tasks, and gives each to the spider of its run."""

    def __init__(self, process: AsyncCrawlerProcess, answers: Answers) -> None:
        self._process, self._answers = process, answers
        self._loop = asyncio.get_event_loop()
        self._crawls: OrderedDict[str, asyncio.Task[Crawl]] = OrderedDict()
        self._jobs: set[asyncio.Task[None]] = set()
        self._stopping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts to work on a page or task, and returns at once."""
        self._loop.add_signal_handler(signal.SIGTERM, self._stop)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in _lines_of_stdin():
            self._loop.call_soon_threadsafe(self._take, line)
        self._loop.call_soon_threadsafe(self._stop)

    def _take(self, line: bytes) -> None:
        if not self._stopping:
            message = json.loads(line)
            if "id" in message:
                job = self._loop.create_task(self._answer(message))
                self._jobs.add(job)
                job.add_done_callback(self._jobs.discard)

    async def _answer(self, message: dict[str, Any]) -> None:
        try:
            job = _job(message)
            crawl = await self._crawl(job)
            await crawl.work(job)
            answer = job.answer()
        except InvalidRecipe as error:
            answer = {"result": FAILED, "logs": [{"message": str(error), "level": 1}]}
        except Exception:
            answer = {"result": FAILED, "logs": [{"message": traceback.format_exc(), "level": 3}]}
        self._answers.say(id=message["id"], **answer)

    async def _crawl(self, job: Job) -> Crawl:
        """Returns the open spider of the job's run."""
        opening = self._crawls.get(job.run)
        if opening is None or (opening.done() and opening.result().is_over):
            opening = self._crawls[job.run] = self._loop.create_task(self._open(job.recipe))
        self._crawls.move_to_end(job.run)
        try:
            return await asyncio.shield(opening)
        except Exception:
            if self._crawls.get(job.run) is opening:
                del self._crawls[job.run]
            raise

    async def _open(self, recipe: Recipe) -> Crawl:
        await self._close_one()
        crawl = Crawl(self._process, recipe)
        await crawl.open()
        return crawl

    async def _close_one(self) -> None:
        if len(self._crawls) <= _OPEN:
            return
        for run, opening in self._crawls.items():
            if opening.done() and not opening.result().jobs:
                del self._crawls[run]
                await opening.result().close()
                return

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = self._loop.create_task(self._end())

    async def _end(self) -> None:
        if self._jobs:
            await asyncio.wait(self._jobs)
        for opening in self._crawls.values():
            await (await opening).close()
        from twisted.internet import reactor

        cast(Any, reactor).stop()


def _job(message: dict[str, Any]) -> Job:
    if task := message.get("task"):
        return Job(str(task["id"]), str(task["crawl"]), Recipe.parse(task["recipe"]))
    page = message["page"]
    data = page.get("data")
    if not (isinstance(data, dict) and "id" in data and "request" in data):
        raise InvalidRecipe("no Scrapy spider has asked for this page: submit the name of one with `trawl task submit`")
    return Job(data.pop("id"), str(page["crawl"]), Recipe.of_object(data), page)


def _lines_of_stdin() -> Iterator[bytes]:
    # Python would not exit because of the lock of `sys.stdin`.
    rest = b""
    while chunk := os.read(0, 65_536):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
