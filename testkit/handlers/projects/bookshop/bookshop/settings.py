BOT_NAME = "bookshop"
SPIDER_MODULES = ["bookshop.spiders"]
NEWSPIDER_MODULE = "bookshop.spiders"

ROBOTSTXT_OBEY = False
CONCURRENT_REQUESTS_PER_DOMAIN = 8
DOWNLOAD_DELAY = 0

DOWNLOADER_MIDDLEWARES = {"bookshop.middlewares.Language": 543}
ITEM_PIPELINES = {"bookshop.pipelines.Price": 300, "bookshop.pipelines.InStock": 400}
