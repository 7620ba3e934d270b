import asyncio
import datetime

import scrapy
from scrapy.exceptions import CloseSpider


class OddSpider(scrapy.Spider):
    """A spider whose callbacks do everything that is allowed, selected by the name of the case."""

    name = "odd"
    site = ""
    case = ""

    async def start(self):
        if self.case == "start_fails":
            yield {"of": "start"}
            raise ValueError("the start fails")
        if self.case == "start_of_many":
            for number in range(10_004):
                yield {"number": number} if number % 4_000 == 0 else scrapy.Request(f"data:,{number}", self.page, dont_filter=True)
            return
        if self.case == "slow_pages":
            yield scrapy.Request(f"{self.site}/slow/1", self.page, dont_filter=True)
            yield scrapy.Request(f"{self.site}/slow/2", self.page, dont_filter=True)
            yield scrapy.Request(f"{self.site}/slow/3", self.page, dont_filter=True)
            return
        if self.case == "slow_lambdas":
            for number in range(1, 4):
                yield scrapy.Request(f"{self.site}/slow/{number}", lambda response: self.page(response))
            return
        if self.case == "item":
            yield {"of": "start"}
        path = PATHS.get(self.case, f"/{self.case}")
        yield scrapy.Request(path if path.startswith("http") else self.site + path, getattr(self, self.case, self.page))

    def page(self, response):
        print("what a callback prints is no answer")
        yield {
            "url": response.url.removeprefix(self.site),
            "status": response.status,
            "cookie": response.request.headers.get("Cookie", b"").decode(),
        }

    def callback_fails_at_once(self, response):
        raise ValueError("a callback fails at once")

    def callback_fails_halfway(self, response):
        yield {"of": "before"}
        yield response.follow("/other", self.page)
        raise ValueError("a callback fails halfway")

    def pipeline_fails(self, response):
        yield {"bad": True}

    def floods(self, response):
        for number in range(200):
            yield {"number": number, "text": "x" * 100_000}

    def closes(self, response):
        yield {"of": "before"}
        raise CloseSpider("enough")

    def odd_values(self, response):
        yield {"text": "a\udcffb", "number": float("nan"), "time": datetime.datetime(2026, 1, 2, 3, 4, 5)}
        yield response.follow("/other", self.page, meta={"text": "a\udcffb", "number": float("inf")})

    def by_lambda(self, response):
        yield response.follow("/other", lambda found: self.page(found))
        yield response.follow("/other", lambda found: self.page(found))

    def by_huge_meta(self, response):
        yield response.follow("/other", self.page, meta={"huge": "x" * 1_100_000})

    async def by_await(self, response):
        found = await self.crawler.engine.download_async(scrapy.Request(f"{self.site}/other"))
        yield {"awaited": found.url.removeprefix(self.site)}
        await asyncio.sleep(0)
        self.crawler.engine.crawl(scrapy.Request(f"{self.site}/third", self.page))

    def twice(self, response):
        for _ in range(2):
            yield response.follow("/other", self.page)
            yield response.follow("/third", self.page, dont_filter=True)
            yield {"same": 1}

    def session(self, response):
        yield response.follow("/other", self.page)
        yield scrapy.Request(f"{self.site}/third", self.page, meta={"cookiejar": 2}, cookies={"own": "1"})

    def log_in(self, response):
        yield scrapy.FormRequest(f"{self.site}/form", formdata={"user": "ä"}, callback=self.page)

    def gzipped(self, response):
        yield {"text": response.css("p::text").get(), "encoding": response.encoding, "coded": "Content-Encoding" in response.headers}

    def recovers(self, response):
        yield {"status": response.status, "retried": response.meta["retry_times"]}

    def has_kwargs(self, response):
        yield response.follow("/other", self.with_kwargs, cb_kwargs={"day": datetime.date(2026, 1, 2)}, priority=3)

    def with_kwargs(self, response, day):
        yield {"year": day.year, "priority": response.request.priority}

    def handles_missing(self, response):
        yield response.follow("/missing", self.page, meta={"handle_httpstatus_list": [404]})

    def fails_in_all_ways(self, response):
        for number, (url, errback) in enumerate(
            (
                ("http://127.0.0.1:1/generator", self.failed),
                ("http://127.0.0.1:1/async", self.failed_async),
                ("http://127.0.0.1:1/plain", self.failed_plain),
                ("http://no-such-host.invalid/", self.failed),
                (f"{self.site}/hangs", self.failed),
                (f"{self.site}/forbidden", self.failed),
            )
        ):
            yield scrapy.Request(url, self.page, errback=errback, cb_kwargs={"number": number}, meta={"dont_retry": True})

    def failed(self, failure):
        kind = failure.type.__name__.removeprefix("Download").removesuffix("Error").replace("CannotResolveHost", "DNSLookup")
        yield {"number": failure.request.cb_kwargs["number"], "kind": kind, "retried": failure.request.meta.get("retry_times")}
        yield scrapy.Request(f"{self.site}/other", self.page, errback=self.failed)

    async def failed_async(self, failure):
        await asyncio.sleep(0)
        for one in self.failed(failure):
            yield one

    def failed_plain(self, failure):
        return list(self.failed(failure))

    def tried_often(self, response):
        yield scrapy.Request("http://127.0.0.1:1/", self.page, errback=self.failed, cb_kwargs={"number": 0})

    def errback_raises(self, response):
        yield scrapy.Request("http://127.0.0.1:1/", self.page, errback=self.raises)

    def raises(self, failure):
        raise ValueError("an errback raises")

    def errback_by_lambda(self, response):
        yield scrapy.Request("http://127.0.0.1:1/", self.page, errback=lambda failure: [{"kind": "lambda"}])

    def middlewares(self, response):
        for path in ("response", "request", "raises", "object", "changed"):
            yield response.follow(f"/mw/{path}", self.seen, dont_filter=True)
        yield response.follow("/mw/ignore", self.seen)
        yield response.follow("/mw/ignore", self.seen, errback=self.ignored, dont_filter=True)
        yield scrapy.Request("http://127.0.0.1:1/", self.seen, meta={"replaced": True, "dont_retry": True})

    def seen(self, response):
        yield {
            "path": response.url.removeprefix(self.site),
            "seen": int(response.request.headers.get("X-Seen", 0)),
            "answered": response.meta.get("answered"),
            "text": response.text,
        }

    def ignored(self, failure):
        yield {"ignored": str(failure.value)}

    def redirects_once_more(self, response):
        yield response.follow("/to/other", self.seen)

    def ignores_all(self, response):
        yield response.follow("/mw/ignore", self.seen)

    def errback_of(self, response):
        yield response.follow("/missing", self.page, errback=self.missing)

    def missing(self, failure):
        yield {"missing": failure.request.url.removeprefix(self.site)}
        yield scrapy.Request(f"{self.site}/other", self.page)


PATHS = {"session": "/login", "redirects": "/to/other", "refused": "http://127.0.0.1:1/", "recovers": "/recovers"}
