"""As `scrapy startproject` makes them, with https://github.com/rmax/scrapy-redis/wiki/Usage."""

import os

BOT_NAME = "crawl"
SPIDER_MODULES = ["crawl.spiders"]
NEWSPIDER_MODULE = "crawl.spiders"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
# Of one process: scrapy-redis shares the queue, not the pace.
DOWNLOAD_DELAY = 0.1
RANDOMIZE_DOWNLOAD_DELAY = False
FEED_EXPORT_ENCODING = "utf-8"

SCHEDULER = "scrapy_redis.scheduler.Scheduler"
DUPEFILTER_CLASS = "scrapy_redis.dupefilter.RFPDupeFilter"
# Keeps the queue when a spider closes, so that a crawl can be resumed.
SCHEDULER_PERSIST = True
REDIS_URL = os.environ["REDIS_URL"]
