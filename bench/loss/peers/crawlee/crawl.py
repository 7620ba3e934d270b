"""https://crawlee.dev/python/docs/examples/resuming-paused-crawl and /docs/guides/request-throttling, scaling-crawlers.

The command sets CRAWLEE_PURGE_ON_START=0 and CRAWLEE_STORAGE_DIR.
"""

import asyncio
import os

from crawlee import ConcurrencySettings
from crawlee.crawlers import BeautifulSoupCrawler
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storages import RequestQueue


async def main():
    # Keeps a host's Retry-After.
    manager = ThrottlingRequestManager(
        await RequestQueue.open(), domains=["127.0.0.1", "127.0.0.2"], request_manager_opener=RequestQueue.open,
    )
    crawler = BeautifulSoupCrawler(
        request_manager=manager,
        respect_robots_txt_file=True,
        # Of all hosts together.
        concurrency_settings=ConcurrencySettings(max_tasks_per_minute=600),
    )

    @crawler.router.default_handler
    async def handle(context):
        await context.push_data({"url": context.request.url, "title": context.soup.title.string})
        await context.enqueue_links(strategy="all")

    await crawler.run([os.environ["SEED"]])


asyncio.run(main())
