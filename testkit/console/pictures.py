"""Takes the pictures of docs/console.md: of a real crawl, of sites that a proxy on this machine makes up."""

import http.server
import io
import random
import tempfile
import threading
import time
from pathlib import Path

from check import log_in, press, text, write
from checks import until
from fleet import Fleet, browser
from PIL import Image

DOCS = Path(__file__).parent.parent.parent / "docs"
SITES = ["www.shop.example", "news.example", "docs.example", "blog.example", "api.travel.example", "forum.example"]
PAGES = 400


class Web(http.server.BaseHTTPRequestHandler):
    """Pages of some sites, as a proxy is asked for them. Some are slow, some are missing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = int("".join(c for c in self.path if c.isdigit()) or 0)
        time.sleep(random.uniform(0.02, 0.2))
        status = 404 if self.path.endswith("/robots.txt") or number % 37 == 5 else 500 if number % 53 == 7 else 200
        links = "".join(f"<a href='/{path}'>on</a>" for path in ("product/3", "product/6?colour=red", "about"))
        body = f"<html lang=en><title>Page {number}</title><meta name=description content='The page {number}'>{links}".encode()
        self.send_response(status)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def pages(site, count):
    kinds = ["product/{}?colour=petrol&size=large", "articles/2026/11/{}-a-title-that-is-rather-long-as-titles-are", "{}"]
    return "".join(f"http://{site}/{kinds[number % 3].format(number)}\n" for number in range(count))


SPIDER = """schedule = "30 2 * * *"
allowed_domains = ["shop.example"]

[arguments]
colour = { default = "petrol", help = "which colour of each product" }

[start]
urls = ["http://www.shop.example/product/0?colour={arg.colour}&size=large"]

[follow]
include = ["/product/"]

[fields]
title = { css = "title::text", required = true }
description = "meta[name=description]::attr(content)"
"""


def try_a_spider(driver, fleet):
    """Deploys one, and leaves the browser on its page, with what it makes of a page."""
    driver.get(fleet.url + "/spiders/deploy")
    write(driver, "project", "shop")
    write(driver, "spider", "products")
    write(driver, "text", SPIDER)
    press(driver, "Deploy")
    until("it is deployed", lambda: driver.current_url.endswith("/projects/shop"))
    driver.get(fleet.url + "/spiders/shop/products")
    write(driver, "url", "http://www.shop.example/product/0?colour=petrol&size=large")
    press(driver, "Try")
    until("the page is shown", lambda: "The page 0" in text(driver, "#trial"))
    driver.execute_script("scrollTo(0, 0)")


def save(picture, path):
    """In 256 colours, which tell all of a page apart: a third of the bytes."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


def take():
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    fleet = Fleet({
        "TRAWL__FETCH__PROXY": f"http://127.0.0.1:{web.server_port}",
        "TRAWL__POLITENESS__RATE": "3/s",
        "TRAWL__RETRY__MAX": "0",
    })
    try:
        fleet.run("producer", "-", "--wait", text="".join(pages(site, 30) for site in SITES[:4]))
        fleet.run("hosts", "block", "tracker.example")
        crawl = fleet.run("producer", "-", text="".join(pages(site, PAGES) for site in SITES))
        time.sleep(100)
        for name, path, is_dark, width, height in [
            ("overview", "/", False, 1280, 760),
            ("crawl-dark", f"/crawls/{crawl}", True, 1280, 1080),
            ("dead-letters-dark", "/dead-letters", True, 1280, 760),
            ("crawl-phone", f"/crawls/{crawl}", False, 390, 844),
            ("spider", None, False, 1280, 1080),
        ]:
            with tempfile.TemporaryDirectory() as profile:
                driver = browser(profile, is_dark, width, height)
                try:
                    log_in(driver, fleet)
                    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
                    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
                    driver.get(fleet.url + path) if path else try_a_spider(driver, fleet)
                    save(driver.get_screenshot_as_png(), DOCS / f"console-{name}.png")
                finally:
                    driver.quit()
    finally:
        fleet.end()
        web.shutdown()
