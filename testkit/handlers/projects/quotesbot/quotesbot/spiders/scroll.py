import scrapy


class ScrollSpider(scrapy.Spider):
    """The API behind a page that loads more as one scrolls. The last pages are the most urgent."""

    name = "scroll"
    site = "http://127.0.0.1:8001"

    @property
    def start_urls(self):
        return [f"{self.site}/api/quotes?page=1"]

    def parse(self, response):
        data = response.json()
        for quote in data["quotes"]:
            yield {"text": quote["text"], "author": quote["author"], "tags": quote["tags"], "page": response.meta.get("page", 1)}
        if data["has_next"]:
            following = data["page"] + 1
            yield scrapy.Request(f"{self.site}/api/quotes?page={following}", meta={"page": following}, priority=following)
