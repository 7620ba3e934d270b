import scrapy
from itemloaders.processors import TakeFirst
from scrapy.loader import ItemLoader

from bookshop.items import Book


class BookLoader(ItemLoader):
    default_item_class = Book
    default_output_processor = TakeFirst()


class CategoriesSpider(scrapy.Spider):
    """From the menu into each category, from there to each book, which is begun on the list and ended on its page."""

    name = "categories"
    site = "http://127.0.0.1:8002"
    custom_settings = {"RETRY_TIMES": 5}

    async def start(self):
        yield scrapy.Request(self.site, self.parse_menu)

    def parse_menu(self, response):
        for link in response.css("ul.nav-list a"):
            category = link.css("::text").get()
            yield response.follow(link, self.parse_category, cb_kwargs={"category": category})

    def parse_category(self, response, category):
        for pod in response.css("article.product_pod"):
            link = pod.css("h3 a")
            book = Book(title=link.attrib["title"], category=category, listed=pod.css("p.price_color::text").get())
            yield response.follow(link.attrib["href"], self.parse_book, errback=self.missing, meta={"book": book})
        for link in response.css("li.next a::attr(href)"):
            yield response.follow(link, self.parse_category, cb_kwargs={"category": category})

    def parse_book(self, response):
        book = response.meta["book"]
        loader = BookLoader(item=book, response=response)
        loader.add_css("price", "p.price_color::text")
        loader.add_css("upc", "td::text")
        loader.add_css("rating", "p.star-rating::attr(class)", re=r"star-rating (\w+)")
        loader.add_value("available", int(response.css("p.availability::text").re_first(r"(\d+) available", "0")))
        loader.add_value("url", response.url)
        return loader.load_item()

    def missing(self, failure):
        yield {"missing": failure.request.url, "status": failure.value.response.status}
