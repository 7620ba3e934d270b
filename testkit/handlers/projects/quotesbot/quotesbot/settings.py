BOT_NAME = "quotesbot"
SPIDER_MODULES = ["quotesbot.spiders"]
NEWSPIDER_MODULE = "quotesbot.spiders"

ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 8
DOWNLOAD_DELAY = 0

ITEM_PIPELINES = {
    "quotesbot.pipelines.CleanText": 300,
    "quotesbot.pipelines.DropUntagged": 400,
}
FEED_EXPORT_ENCODING = "utf-8"
