"""Which requests trawl downloads, and what it is asked to send."""

import unittest
from types import SimpleNamespace

import scrapy
import scrapy.downloadermiddlewares.cookies
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.settings import Settings, default_settings
from tldextract import TLDExtract

from trawl_scrapy import pages, requests
from trawl_scrapy.frontier import Frontier, NotForTrawl

URL = "http://a.example/"
# It would ask the web for a list of domains.
scrapy.downloadermiddlewares.cookies._split_domain = TLDExtract(suffix_list_urls=())


class Changes:
    def process_request(self, request):
        pass


class Looks(RetryMiddleware):
    def process_response(self, request, response):
        return response


class Mine(scrapy.Spider):
    name = "mine"

    def fails(self, failure):
        pass


def frontier(*more, **settings):
    """Of a spider with these middlewares besides, and these settings."""
    settings = Settings({"DEFAULT_REQUEST_HEADERS": {"Accept": "text/html"}, **settings})
    middlewares = [HttpAuthMiddleware(), DefaultHeadersMiddleware({"Accept": "text/html"}.items()), UserAgentMiddleware(default_settings.USER_AGENT), *more]
    crawler = SimpleNamespace(
        settings=settings,
        engine=SimpleNamespace(downloader=SimpleNamespace(middleware=SimpleNamespace(middlewares=[*middlewares, CookiesMiddleware()]))),
        get_downloader_middleware=lambda kind: next((one for one in middlewares if isinstance(one, kind)), None),
    )
    return Frontier(crawler)


def asked(request, of=None, data=None):
    return (of or frontier()).request(request, requests.write(request, Mine()), data or {})[0]


class Asked(unittest.TestCase):
    def test_what_scrapys_middlewares_set_is_sent_but_for_what_trawl_sets_itself(self):
        request = scrapy.Request(
            URL, method="POST", body="ä", cookies={"id": "7"}, headers={"Accept-Encoding": "br", "X-Own": ["1", "2"]}
        )
        # As in a request that is tried again.
        request.headers["User-Agent"] = default_settings.USER_AGENT
        request.meta.update(http_user="u", http_pass="p")
        said = asked(request, data={"n": 1})
        headers = sorted(map(list, said.pop("headers")))
        self.assertEqual(headers, [["Accept", "text/html"], ["Authorization", "Basic dTpw"], ["X-Own", "1"], ["X-Own", "2"]])
        self.assertEqual(
            said, {"url": URL, "method": "POST", "cookies": [("id", "7")], "body": "ä", "data": {"n": 1}, "any_status": True}
        )
        self.assertNotIn("Accept", request.headers, "the request that travels is as the spider has it")
        self.assertEqual(asked(scrapy.Request(URL, body=b"\xff"))["base64"], "/w==")

    def test_what_trawl_would_download_in_another_way_it_does_not_download(self):
        for request, expected in (
            (scrapy.Request(URL, errback=Mine().fails), "an errback"),
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
        ):
            with self.assertRaisesRegex(NotForTrawl, expected):
                asked(request)
        with self.assertRaisesRegex(NotForTrawl, "more than 60000 bytes"):
            asked(scrapy.Request(URL), data={"n": "x" * 60_000})
        # As `DownloadTimeoutMiddleware` has noted it, in a request that is tried again.
        asked(scrapy.Request(URL, meta={"download_timeout": 180.0}))

    def test_a_project_that_may_change_requests_or_download_them_itself_has_tasks_alone(self):
        for of, expected in (
            (frontier(Changes()), "Changes of the project"),
            (frontier(HTTPCACHE_ENABLED=True), "HTTPCACHE_ENABLED"),
            (frontier(DOWNLOAD_HANDLERS={"https": "playwright.Handler"}), "for https"),
        ):
            with self.assertRaisesRegex(NotForTrawl, expected):
                asked(scrapy.Request(URL), of)
        asked(scrapy.Request(URL), frontier(Looks(Settings()), DOWNLOAD_HANDLERS={"s3": None}))


class Pages(unittest.TestCase):
    def test_a_page_is_a_response_of_the_class_and_with_the_bytes_that_scrapy_would_have(self):
        page = {"status": 404, "headers": [["content-type", "text/html; charset=latin-1"], ["content-encoding", "br"], ["a", "1"], ["a", "2"]]}
        response = pages.response({**page, "base64": "PHA+5DwvcD4="}, scrapy.Request(URL + "#part"))
        self.assertEqual((type(response).__name__, response.url, response.status), ("HtmlResponse", URL, 404))
        self.assertEqual((response.text, response.headers.getlist("A")), ("<p>ä</p>", [b"1", b"2"]))
        self.assertNotIn("Content-Encoding", response.headers)
        self.assertEqual(pages.response({**page, "text": "ä"}, scrapy.Request(URL)).body, "ä".encode())
