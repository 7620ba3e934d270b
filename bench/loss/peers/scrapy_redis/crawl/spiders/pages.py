from scrapy_redis.spiders import RedisSpider


class Pages(RedisSpider):
    name = "pages"
    redis_key = "pages:start_urls"
    # Seconds without work after which a spider closes. By default it waits for ever, and says no end.
    max_idle_time = 60

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a")
