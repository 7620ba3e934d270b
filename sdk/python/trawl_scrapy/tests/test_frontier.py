"""The requests that trawl downloads, and the fields that it is asked to send."""

import asyncio
import unittest
from types import SimpleNamespace

import scrapy
import scrapy.downloadermiddlewares.cookies
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import Settings, default_settings
from tldextract import TLDExtract

from trawl_scrapy import failures, pages, requests
from trawl_scrapy.handover import Handover
from trawl_scrapy.job import Job, Wanted, current
from trawl_scrapy.recipe import Recipe

URL = "http://a.example/"
# Prevents a download of a list of domains.
scrapy.downloadermiddlewares.cookies._split_domain = TLDExtract(suffix_list_urls=())


class Proxies:
    """A project's own middleware that sends some requests through a proxy of its choice."""

    def process_request(self, request):
        request.headers["X-Seen"] = str(int(request.headers.get("X-Seen", 0)) + 1)
        if request.url.endswith("/far"):
            request.meta["proxy"] = "http://proxy.example:1"


class Looks(RetryMiddleware):
    def process_response(self, request, response):
        return response


class Mine(scrapy.Spider):
    name = "mine"

    def fails(self, failure):
        pass


def handover(*more, **settings):
    """Returns the handover of a spider with these additional middlewares and these settings."""
    settings = Settings({"DEFAULT_REQUEST_HEADERS": {"Accept": "text/html"}, **settings})
    middlewares = [
        HttpAuthMiddleware(),
        DefaultHeadersMiddleware({"Accept": "text/html"}.items()),
        UserAgentMiddleware(default_settings.USER_AGENT),
        HttpCompressionMiddleware(),
        *more,
        CookiesMiddleware(),
    ]
    crawler = SimpleNamespace(
        settings=settings,
        spider=Mine(),
        engine=SimpleNamespace(downloader=SimpleNamespace(middleware=DownloaderMiddlewareManager(*middlewares))),
        get_downloader_middleware=lambda kind: next((one for one in middlewares if isinstance(one, kind)), None),
    )
    return Handover(crawler)


def answer(request, of=None, **recipe):
    """Returns the answer of a job that wants a request."""
    job = Job("a", "a", Recipe("mine", **recipe))
    job.wanted.append(Wanted(request, "unique", []))

    async def all():
        current.set(job)
        await (of or handover()).all(job)

    asyncio.run(all())
    return job.answer()


def asked(request, of=None, **recipe):
    [said] = answer(request, of, **recipe)["urls"]
    return said


class Asked(unittest.TestCase):
    def test_what_scrapys_middlewares_set_is_sent_but_for_what_trawl_sets_itself(self):
        request = scrapy.Request(
            URL, method="POST", body="ä", cookies={"id": "7"}, headers={"Accept-Encoding": "br", "X-Own": ["1", "2"]}
        )
        # As in a request that is retried.
        request.headers["User-Agent"] = default_settings.USER_AGENT
        request.meta.update(http_user="u", http_pass="p")
        said = asked(request, args={"n": "1"})
        headers, data = sorted(map(list, said.pop("headers"))), said.pop("data")
        self.assertEqual(headers, [["Accept", "text/html"], ["Authorization", "Basic dTpw"], ["X-Own", "1"], ["X-Own", "2"]])
        self.assertEqual(
            said, {"url": URL, "method": "POST", "cookies": [("id", "7")], "body": "ä", "any_status": True, "failures": "each", "unique": "unique"}
        )
        self.assertEqual((data["args"], data["id"], data["prepared"]), ({"n": "1"}, "unique", True))
        travels = data["request"]["headers"]
        self.assertNotIn("Accept", travels, "what is filled in once more need not travel")
        self.assertEqual(travels["Authorization"], ["Basic dTpw"])
        self.assertNotIn("Accept", request.headers, "the request of the spider is as it was")
        self.assertEqual(asked(scrapy.Request(URL, body=b"\xff"))["base64"], "/w==")

    def test_what_trawl_would_download_in_another_way_it_does_not_download(self):
        for request, expected in (
            (scrapy.Request("ftp://a.example/"), "not of http"),
            (scrapy.Request("http://user:x@a.example/"), "a user in it"),
            (scrapy.Request(URL + "x" * 2_000), "more than 2000 bytes"),
            (scrapy.Request(URL, method="TRACE"), "sends no TRACE"),
            (scrapy.Request(URL, meta={"proxy": "http://p.example"}), "`proxy`"),
            (scrapy.Request(URL, meta={"download_timeout": 3}), "`download_timeout`"),
            (scrapy.Request(URL, headers={"User-Agent": "another"}), "`User-Agent`"),
            (scrapy.Request(URL, headers={"Range": "bytes=0-9"}), "`Range`"),
            (scrapy.Request(URL, headers={"X-Own": "ä"}), "not plain text"),
            (scrapy.Request(URL, headers={"X-Own": "x" * 16_000}), "more than 15000 bytes"),
            (scrapy.Request(URL, cookies={"a": "b,c"}), "its cookie `a`"),
            (scrapy.Request(URL, cb_kwargs={"n": "x" * 60_000}), "more than 60000 bytes"),
        ):
            self.is_task(request, handover(), expected)
        # `DownloadTimeoutMiddleware` sets this, as in a request that is retried.
        asked(scrapy.Request(URL, meta={"download_timeout": 180.0}))
        asked(scrapy.Request(URL, errback=Mine().fails))

    def test_what_a_middleware_of_the_project_does_to_a_request_it_does_once(self):
        said = asked(scrapy.Request(URL), handover(Proxies()))
        self.assertIn(("X-Seen", "1"), said["headers"])
        task = self.is_task(scrapy.Request(URL + "far"), handover(Proxies()), "`proxy`")
        recipe = Recipe.parse(task["recipe"])
        self.assertEqual((recipe.prepared, recipe.request["headers"]["X-Seen"]), (True, ["1"]))

    def test_a_project_that_downloads_requests_itself_has_tasks_alone(self):
        for of, expected in (
            (handover(HTTPCACHE_ENABLED=True), "HTTPCACHE_ENABLED"),
            (handover(DOWNLOAD_HANDLERS={"https": "playwright.Handler"}), "for https"),
        ):
            recipe = Recipe.parse(self.is_task(scrapy.Request(URL), of, expected)["recipe"])
            self.assertFalse(recipe.prepared, "its middlewares look at it when it is downloaded")
        asked(scrapy.Request(URL), handover(Looks(Settings()), DOWNLOAD_HANDLERS={"s3": None}))

    def is_task(self, request, of, why):
        with self.assertLogs("trawl_scrapy.handover", "DEBUG") as logs:
            said = answer(request, of)
        self.assertRegex(logs.output[0], why)
        [task] = said["tasks"]
        return task


class Pages(unittest.TestCase):
    def test_a_page_is_a_response_of_the_class_and_with_the_bytes_that_scrapy_would_have(self):
        page = {"status": 404, "headers": [["content-type", "text/html; charset=latin-1"], ["content-encoding", "br"], ["a", "1"], ["a", "2"]]}
        response = pages.response({**page, "base64": "PHA+5DwvcD4="}, scrapy.Request(URL + "#part"))
        self.assertEqual((type(response).__name__, response.url, response.status), ("HtmlResponse", URL, 404))
        self.assertEqual((response.text, response.headers.getlist("A")), ("<p>ä</p>", [b"1", b"2"]))
        self.assertNotIn("Content-Encoding", response.headers)
        self.assertEqual(pages.response({**page, "text": "ä"}, scrapy.Request(URL)).body, "ä".encode())


class Failures(unittest.TestCase):
    def test_a_failure_is_what_scrapys_own_downloader_raises(self):
        for kind, detail, tried_again in (
            ("dns", "no such host", True),
            ("connect", "Connection refused (os error 111)", True),
            ("connect", "Connection reset by peer (os error 104)", True),
            ("timeout", "no answer within 30s", True),
            ("tls", "certificate has expired", True),
            ("body", "the body broke off", True),
            ("robots", "robots.txt: 500", True),
            ("size", "the body has more than 10 MB", False),
            ("forbidden", "10.0.0.1 is not a public address", False),
        ):
            raised = failures.exception({"class": kind, "skipped": False, "detail": detail, "attempt": 1})
            retries = RetryMiddleware(Settings({"RETRY_ENABLED": True}))
            self.assertEqual(isinstance(raised, retries.exceptions_to_retry), tried_again, f"{kind}: {raised!r}")
            self.assertIn(detail, f"{raised} {raised.__cause__} {getattr(raised, 'reasons', '')}")
        self.assertIsNone(failures.of_proxy(Response(URL, 502)), "it is the host's")
        for error, expected in (("dns_error", "dns"), ("destination_unavailable", "connect"), ("destination_ip_prohibited", "forbidden")):
            of_proxy = failures.of_proxy(Response(URL, 502, {"Proxy-Status": f"trawl; error={error}"}, b"why\n"))
            self.assertEqual((of_proxy["class"], of_proxy["detail"]), (expected, "why"))
        busy = Response(URL, 503, {"Proxy-Status": "trawl; error=connection_limit_reached", "Retry-After": "9"})
        self.assertIsNone(failures.of_proxy(busy), "it is tried again as Scrapy tries 503")
        skipped = failures.exception({"class": "robots", "skipped": True, "detail": "robots.txt forbids it", "attempt": 1})
        self.assertIsInstance(skipped, IgnoreRequest)
