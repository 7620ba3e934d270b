"""Yields the title of each page."""

import html
import re

from trawl_handler import handler, run

TITLE = re.compile("<title>(.*?)</title>", re.DOTALL)


def title(text):
    found = TITLE.search(text)
    return {"title": html.unescape(found[1].strip()) if found else None}


@handler
def parse(page):
    yield title(page.text)


if __name__ == "__main__":
    run()
