"""A page handler: extracts the title of each page, and follows all its links.

    [handler]
    run = ["python3", "pages.py"]
    mode = "stream"
"""

import re

from trawl_handler import handler, run


@handler
def parse(page):
    title = re.search(r"<title>(.*?)</title>", page.text, re.DOTALL)
    yield {"title": title.group(1).strip() if title else None}
    for href in re.findall(r'<a [^>]*href="([^"#]+)"', page.text):
        yield page.follow(href)


run()
