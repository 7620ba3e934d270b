"""Reads a page, which takes a while, and follows its links. Notes when it began and when it was ready."""

import re
import time

from trawl_handler import handler, run


@handler
def parse(page):
    began = time.time()
    for link in re.findall('href="([^"]+)"', page.text):
        yield page.follow(link)
    time.sleep(0.4)
    yield {"page": page.url, "began": began, "ready": time.time()}


run()
