from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class CatalogueSpider(CrawlSpider):
    """All books by rules alone."""

    name = "catalogue"
    site = "http://127.0.0.1:8002"
    rules = (
        Rule(LinkExtractor(restrict_css="li.next")),
        Rule(LinkExtractor(restrict_css="article.product_pod h3"), callback="parse_book"),
    )

    @property
    def start_urls(self):
        return [self.site]

    def parse_book(self, response):
        return {
            "title": response.css("h1::text").get(),
            "price": response.css("p.price_color::text").get(),
            "depth": response.meta["depth"],
            "link": response.meta["link_text"],
        }
