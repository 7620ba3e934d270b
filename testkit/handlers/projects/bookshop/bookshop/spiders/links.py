from urllib.parse import urlsplit

import scrapy


class LinksSpider(scrapy.Spider):
    """Each book, and a shop elsewhere for each, of which none can be reached: what an errback is given of it, and what that asks for in its place."""

    name = "links"
    site = "http://127.0.0.1:8002"
    custom_settings = {"RETRY_TIMES": 2, "RETRY_PRIORITY_ADJUST": 1}

    async def start(self):
        yield scrapy.Request(self.site, self.parse_list, errback=self.failed)
        yield scrapy.Request("http://no-such-shop.invalid/", self.parse_book, errback=self.failed)

    def parse_list(self, response):
        # Nobody listens there.
        elsewhere = f"http://127.0.0.2:{urlsplit(self.site).port}"
        for link in response.css("article.product_pod h3 a::attr(href)"):
            yield response.follow(link, self.parse_book, errback=self.failed)
            yield scrapy.Request(elsewhere + link.get(), self.parse_book, errback=self.failed, cb_kwargs={"elsewhere": True})
        for link in response.css("li.next a::attr(href)"):
            yield response.follow(link, self.parse_list, errback=self.failed_list)

    def parse_book(self, response, elsewhere=False):
        sent = response.request.headers.get("Accept-Language").decode()
        yield {"url": response.url, "title": response.css("h1::text").get(), "elsewhere": elsewhere, "sent": sent}

    def parse_in_place(self, response, failed):
        yield {"in_place_of": failed, "books": len(response.css("article.product_pod"))}

    async def failed(self, failure):
        url, kind = failure.request.url, failure.type.__name__
        yield {"failed": url, "kind": kind, "retried": failure.request.meta.get("retry_times")}
        yield scrapy.Request(f"{self.site}?of={url}", self.parse_in_place, cb_kwargs={"failed": url}, errback=self.failed_list)

    def failed_list(self, failure):
        self.logger.error("no list: %r", failure.value)
