"""Six crawls in one fleet, each with a trouble of its own, and what a person is told of them: by `trawl status`, by the first page of the
console, by events and webhooks, and by the numbers that alerts are made of. Whoever reads it must learn what is wrong, and what to do."""

import http.server
import json
import tempfile
import threading
import urllib.request

from check import log_in, text
from checks import until
from fleet import OPERATOR, Fleet, browser
from pictures import DOCS, save

SECRET = "the-secret-of-the-webhooks-of-a-test-and-of-nothing-else"


def spider(site, fields, more=""):
    return f'allowed_domains = ["{site}"]\n{more}\n[follow]\ninclude = ["/page/"]\n\n[fields]\n{fields}\n'


REQUIRED = 'price = {{ css = "{}", required = true }}'
FILES = {
    "spiders/shop.toml": spider("www.shop.example", REQUIRED.format(".price-old::text")),
    "spiders/news.toml": spider("news.example", 'title = "title::text"'),
    "spiders/tenders.toml": spider("tenders.example", 'title = "title::text"', '[[sinks]]\nkind = "postgres"\nurl = "postgres://trawl@127.0.0.1:9/tenders"\n'),
    "spiders/docs.toml": spider("docs.example", 'title = "title::text"'),
    "spiders/travel.toml": spider("travel.example", 'title = "title::text"'),
    "spiders/payments/spider.toml": '[handler]\nrun = ["python9", "run.py"]\n',
    "spiders/payments/run.py": "print()\n",
}


# What has to be said of each.
TOLD = {
    "shop": "the required field `price` is missing on all 60 pages",
    "news": "news.example answered 429 and is left alone until",
    "travel": "30 of 30 URLs (http)",
    "tenders": "Connection refused",
    "payments": "there is no program `python9` in PATH",
    "docs": "5 URLs were seen before",
}


class Web(http.server.BaseHTTPRequestHandler):
    """The sites, as a proxy is asked for them. One wants to be left alone, one lets nobody in."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host = self.headers["host"]
        status = {"news.example": 429, "travel.example": 403}.get(host, 200)
        if self.path.endswith("/robots.txt"):
            status = 404
        body = f"<html lang=en><title>{self.path}</title><p class=price-new>7.50".encode()
        self.send_response(status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        if status == 429:
            self.send_header("retry-after", "3600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Receiver(http.server.BaseHTTPRequestHandler):
    """What webhooks are sent to."""

    received = []

    def do_POST(self):
        self.received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def pages(site, count):
    return "".join(f"http://{site}/page/{number}\n" for number in range(count))


def fleet():
    webhooks = f'[[webhooks]]\nurl = "http://127.0.0.1:{serve(Receiver)}/hook"\nsecret = "{SECRET}"\n'
    return Fleet(
        {
            "TRAWL__FETCH__PROXY": f"http://127.0.0.1:{serve(Web)}",
            "TRAWL__FETCH__ALLOW_PRIVATE": "true",
            "TRAWL__POLITENESS__RATE": "unlimited",
            "TRAWL__RECOVERY__LOST_AFTER": "4s",
            "TRAWL__EVENTS__STALLED_AFTER": "10s",
        },
        FILES | {"trawl.toml": webhooks},
    )


def begin(fleet):
    """Begins the crawls."""
    feed = lambda spider, urls, *more: fleet.run("producer", "-", "--spider", spider, *more, text=urls)
    fleet.run("producer", "-", "--spider", "docs", "--wait", text=pages("docs.example", 5))
    feed("shop", pages("www.shop.example", 60))
    feed("news", pages("news.example", 40))
    feed("travel", pages("travel.example", 30))
    feed("tenders", pages("tenders.example", 30))
    fleet.run("task", "submit", "--spider", "payments", "-", text='"invoice 1"\n"invoice 2"\n')
    feed("docs", pages("docs.example", 5))


def metrics(fleet):
    request = urllib.request.Request(fleet.url + "/metrics", headers={"authorization": f"Bearer {OPERATOR}"})
    return urllib.request.urlopen(request).read().decode()


def show(fleet, folder):
    """Takes the pictures, and returns what is said in words."""
    words = {"status": fleet.run("status"), "metrics": metrics(fleet), "events": "\n".join(map(json.dumps, Receiver.received))}
    for name, width, height in [("night", 1280, 1000), ("night-phone", 390, 844)]:
        with tempfile.TemporaryDirectory() as profile:
            driver = browser(profile, False, width, height)
            try:
                log_in(driver, fleet)
                size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                driver.get(fleet.url)
                until("it is shown", lambda: "begun" in text(driver))
                words["console"] = text(driver)
                save(driver.get_screenshot_as_png(), folder / f"console-{name}.png")
            finally:
                driver.quit()
    return words


def main():
    """Prints what is said, and checks that it names each trouble and the next step."""
    night = fleet()
    try:
        begin(night)
        expected = {("shop", "quality"), ("travel", "failing"), ("docs", "empty")} | {(name, "stalled") for name in ("news", "tenders", "payments")}
        said = lambda: {(event.get("spider"), event["type"].removeprefix("crawl.")) for event in Receiver.received}
        until("each has come to what ails it", lambda: expected <= said())
        words = show(night, DOCS)
        for name, said in words.items():
            print(f"\n== {name}\n{said}")
        for spider, told in TOLD.items():
            for name in ("status", "console"):
                # The console shows what is between backticks as code.
                assert told.replace("`", "") in words[name].replace("`", ""), (spider, told, name)
        for what in ("failing", "no_fields", "empty"):
            assert f'trawl_crawls_amiss{{what="{what}"}} 1' in words["metrics"], what
    finally:
        night.end()

