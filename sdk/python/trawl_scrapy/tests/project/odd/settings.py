BOT_NAME = "odd"
SPIDER_MODULES = ["odd.spiders"]
ROBOTSTXT_OBEY = False
RETRY_TIMES = 1
DOWNLOAD_DELAY = 0
ITEM_PIPELINES = {"odd.pipelines.Picky": 1}
