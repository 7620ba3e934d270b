import os

import scrapy


class Pages(scrapy.Spider):
    name = "pages"
    start_urls = [os.environ["SEED"]]

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(css="a")
