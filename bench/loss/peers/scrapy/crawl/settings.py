"""As `scrapy startproject` makes them, with https://docs.scrapy.org/en/latest/topics/jobs.html: the command sets JOBDIR."""

BOT_NAME = "crawl"
SPIDER_MODULES = ["crawl.spiders"]
NEWSPIDER_MODULE = "crawl.spiders"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 0.1
# Else a delay is between half and one and a half of that.
RANDOMIZE_DOWNLOAD_DELAY = False
FEED_EXPORT_ENCODING = "utf-8"
