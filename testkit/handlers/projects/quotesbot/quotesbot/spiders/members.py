import scrapy

from quotesbot.items import Quote


class MembersSpider(scrapy.Spider):
    """Logs in with the form, and reads the notes that only members see."""

    name = "members"
    site = "http://127.0.0.1:8001"

    async def start(self):
        yield scrapy.Request(f"{self.site}/login", self.log_in)

    def log_in(self, response):
        return scrapy.FormRequest.from_response(response, formdata={"username": "reader", "password": "secret"}, callback=self.parse_page)

    def parse_page(self, response):
        if not response.xpath("//a[text()='Logout']"):
            self.logger.error("not logged in on %s", response.url)
            return
        for quote in response.css("div.quote"):
            yield Quote(
                text=quote.css("span.text::text").get(),
                author=quote.css("small.author::text").get(),
                tags=quote.css("a.tag::text").getall(),
                note=quote.css("p.note::text").get(),
            )
        yield from response.follow_all(css="li.next a", callback=self.parse_page)
