"""Compares trawl's extractor with parsel. Run by `scripts/parsel-diff`."""

import json
import subprocess
import sys
from pathlib import Path

from parsel import Selector

DOC = Path("/usr/share/doc")

# For every site: title, links, and three fields; `[]` takes all values.
COMMON = {
    "title": "title::text",
    "links[]": "a::attr(href)",
    "headings[]": "h1 ::text",
}
SITES = {
    "rust-doc/html": {
        "description": "meta[name=description]::attr(content)",
        "code[]": "pre.rust code ::text",
    },
    "python3.11/html": {
        "toc[]": ".toctree-wrapper a::attr(href), .sphinxsidebarwrapper li > a::attr(href)",
        "names[]": "dl.py > dt.sig::attr(id)",
    },
    "postgresql-doc-15/html": {
        "toc[]": ".toc a::attr(href)",
        "cells[]": "table td:first-child ::text",
    },
}


def folded(text):
    return " ".join(text.split())


def by_parsel(path, fields):
    selector = Selector(text=path.read_text("utf-8", "replace"), type="html")
    found = {}
    for name, css in fields.items():
        values = [text for text in map(folded, selector.css(css).getall()) if text]
        found[name.removesuffix("[]")] = values if name.endswith("[]") else next(iter(values), None)
    return found


def by_trawl(program, paths, fields):
    arguments = [f"{name}={css}" for name, css in fields.items()]
    names = "".join(f"{path}\n" for path in paths)
    answer = subprocess.run([program, *arguments], input=names, text=True, capture_output=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def chosen(site, count):
    pages = sorted(path for path in (DOC / site).rglob("*.html") if path.is_file())
    if not pages:
        sys.exit(f"{DOC / site} has no pages: install rust-doc, python3.11-doc and postgresql-doc-15")
    step = max(1, len(pages) // count)
    return pages[::step][:count]


def main(program, count):
    equal = total = 0
    values = 0
    for number, (site, own) in enumerate(SITES.items()):
        fields = COMMON | own
        paths = chosen(site, (count + number) // len(SITES))
        for path, trawl in zip(paths, by_trawl(program, paths, fields), strict=True):
            parsel = by_parsel(path, fields)
            total += 1
            values += sum(len(value) if isinstance(value, list) else value is not None for value in parsel.values())
            if trawl["fields"] == parsel:
                equal += 1
                continue
            for name, value in parsel.items():
                other = (trawl["fields"] or {}).get(name, trawl["error"])
                if other != value:
                    print(f"{path}: {name}: parsel {str(value)[:300]}\n    trawl {str(other)[:300]}")
    print(f"{equal} of {total} pages are equal, with {values} values")
    sys.exit(equal != total)


main(sys.argv[1], int(sys.argv[2]))
