"""Scrapy's advice for broad crawls, and scrapy-redis for the requests."""

import os

BOT_NAME = "peer"
SPIDER_MODULES = ["peer.spiders"]

SCHEDULER = "scrapy_redis.scheduler.Scheduler"
SCHEDULER_PERSIST = True
SCHEDULER_QUEUE_CLASS = "scrapy_redis.queue.FifoQueue"
DUPEFILTER_CLASS = "scrapy_redis.dupefilter.RFPDupeFilter"
REDIS_URL = os.environ["REDIS_URL"]

CONCURRENT_REQUESTS = int(os.environ.get("CONCURRENCY", "32"))
CONCURRENT_REQUESTS_PER_DOMAIN = CONCURRENT_REQUESTS
DOWNLOAD_DELAY = 0
AUTOTHROTTLE_ENABLED = False
REACTOR_THREADPOOL_MAXSIZE = 20
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

ROBOTSTXT_OBEY = False
COOKIES_ENABLED = False
RETRY_ENABLED = False
REDIRECT_ENABLED = False
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "ERROR"

FEEDS = {os.environ["OUT"]: {"format": "jsonlines", "encoding": "utf-8", "overwrite": True}}
CLOSESPIDER_ITEMCOUNT = int(os.environ["COUNT"])
