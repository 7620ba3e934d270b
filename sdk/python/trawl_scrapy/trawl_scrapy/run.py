"""A whole run of a spider as one task, as with `scrapy crawl`, in this process. Items are written to a file as they
come, from which an interrupted run continues; the single answer at the end names the file."""

from __future__ import annotations

import json
import sys
from typing import Any

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.settings import Settings

from . import logs, project
from .answers import Answers, encode
from .components import StartsOnce
from .items import Items
from .job_folder import JobFolder
from .recipe import InvalidRecipe, Recipe

DONE, FAILED = 0, 1
# Reasons for which Scrapy closes a spider after which the run should be retried. All others, such as those that a
# spider gives itself, are regular ends.
_ABNORMAL = {"shutdown", "start_error", "memusage_exceeded", "closespider_errorcount"}
_ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def run(folder: str, task_json: str) -> int:
    """Runs the spider that the task names, and answers with the result. Returns the exit code of the process."""
    answers = Answers()
    log, job = logs.Bounded(), None
    try:
        # A task that is too long for an argument comes on standard input only.
        task = json.loads(sys.stdin.read() if task_json == "-" else task_json)
        recipe = Recipe.parse(task["recipe"])
        settings = project.enter(folder)
        settings.setdict(recipe.settings, priority="cmdline")
        job = JobFolder(task)
        reason, is_whole = _crawl(recipe, settings, job, log)
    except (InvalidRecipe, project.NoProject, PermissionError) as error:
        answers.say(result=FAILED, logs=[{"message": str(error), "level": 1}])
        if job:
            job.remove()
        return 1
    failed = reason is None or reason in _ABNORMAL
    log.take({"message": f"the spider was closed: {reason or 'it could not be opened'}", "level": 3 if failed else 5})
    if failed:
        answers.say(result=FAILED, logs=log.entries())
    else:
        answers.say(result=DONE, logs=log.entries(), items_file=job.hand_items_over())
    if reason == "shutdown" and is_whole:
        job.keep()
    else:
        job.remove()
    return int(failed)


def _crawl(recipe: Recipe, settings: Settings, job: JobFolder, log: logs.Bounded) -> tuple[str | None, bool]:
    """Returns why the spider was closed (`None` if it could not be opened), and whether all remaining work is in
    the folder."""
    reasons: list[str] = []
    job.settle_in(settings)
    logs.install(settings, log.take)
    # As `scrapy crawl` chooses.
    is_async = settings["TWISTED_REACTOR"] == _ASYNCIO and not settings.getbool("FORCE_CRAWLER_PROCESS")
    process: AsyncCrawlerProcess | CrawlerProcess = (AsyncCrawlerProcess if is_async else CrawlerProcess)(settings)
    try:
        crawler = process.create_crawler(recipe.spider)
    except KeyError:
        raise InvalidRecipe(project.unknown(recipe.spider, process.spider_loader)) from None
    exporter = Items(crawler)
    with job.items.open("a", encoding="utf-8", errors="replace") as items:

        def scraped(item: Any) -> None:
            items.write(encode(exporter.fields(item)) + "\n")

        def closed(reason: str) -> None:
            reasons.append(reason)

        crawler.signals.connect(scraped, signals.item_scraped)
        crawler.signals.connect(closed, signals.spider_closed)
        process.crawl(crawler, **recipe.args)
        process.start()
    if not reasons:
        return None, False
    start = crawler.get_spider_middleware(StartsOnce)
    reason = "start_error" if start and start.has_failed else reasons[0]
    # Requests that Scrapy could not write, such as those with a lambda as callback, are lost with the process.
    return reason, not crawler.stats.get_value("scheduler/unserializable")
