import scrapy

from quotesbot.items import Quote


class QuotesSpider(scrapy.Spider):
    """Each quote with what its author's page says. Many quotes have one author, whose page is asked for each time."""

    name = "quotes"
    site = "http://127.0.0.1:8001"
    tag = None

    async def start(self):
        path = f"/tag/{self.tag}/page/1/" if self.tag else "/"
        yield scrapy.Request(self.site + path)

    def parse(self, response):
        for quote in response.css("div.quote"):
            item = Quote(text=quote.css("span.text::text").get(), tags=quote.css("a.tag::text").getall())
            about = quote.css("a.about::attr(href)").get()
            yield response.follow(about, self.parse_author, cb_kwargs={"quote": item}, dont_filter=True)
        yield from response.follow_all(css="li.next a", callback=self.parse)

    def parse_author(self, response, quote):
        quote["author"] = response.css("h3.author-title::text").get()
        quote["born"] = response.css("p.born::text").get()
        yield quote
