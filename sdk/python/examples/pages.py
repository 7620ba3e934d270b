"""A page handler: the title of each page, and all links that lead on.

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
