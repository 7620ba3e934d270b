"""Follows the links of a page and works on it for as long as it says. Notes when it began and when it was ready."""

import re
import time

from trawl_handler import handler, run


@handler
def parse(page):
    began = time.time()
    for link in re.findall('href="([^"]+)"', page.text):
        yield page.follow(link)
    time.sleep(float(re.search('data-seconds="(.+?)"', page.text)[1]))
    yield {"page": page.url, "began": began, "ready": time.time()}


run()
