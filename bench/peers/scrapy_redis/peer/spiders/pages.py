from scrapy_redis.spiders import RedisSpider


class PagesSpider(RedisSpider):
    name = "pages"
    redis_key = "pages:start_urls"
    # It takes the next start URLs only when it has nothing else left to do: better seldom and many.
    redis_batch_size = 1000

    def parse(self, response):
        yield {
            "url": response.request.url,
            "title": response.xpath("//title/text()").get("").strip(),
            "links": [response.urljoin(href) for href in response.xpath("//a/@href").getall()],
        }
