"""Compares trawl's readers with those of other projects on these projects' fixtures: `scripts/parsel-diff` runs it.

usage: readers_diff.py EXTRACT TRAWL FOLDER, with the example `extract`, trawl, and a folder with the unpacked source archives. It prints each
difference and, for each project, the counts. `scripts/readers-diff.md` decides on the differences.
"""

import ast
import html
import importlib.util
import json
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urldefrag, urlsplit, urlunsplit

import extruct
import feedparser
from parsel import Selector


def read_fields(program, fields, paths):
    """What trawl reads of each page; none of a page that it refuses."""
    names = "".join(f"{path}\n" for path in paths)
    answer = subprocess.run([program, *fields], input=names, text=True, capture_output=True, check=False)
    return [json.loads(line)["fields"] for line in answer.stdout.splitlines()] or [None] * len(paths)


def read_all(program, kind, texts, folder):
    """The value that trawl reads of each text, alone in an element."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.html" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(f"<!doctype html><meta charset=utf-8><p>{html.escape(text)}</p>", "utf-8")
    return [fields["x"] for fields in read_fields(program, [f"x:{kind}=p"], paths)]


def prices(folder):
    """Text, decimal mark and amount of each of price-parser's examples."""
    path = next(folder.glob("price_parser-*/tests/test_price_parsing.py"))
    examples = module(path)
    lists = [value for name, value in vars(examples).items() if name.startswith("PRICE_PARSING_") and isinstance(value, list)]
    for one in (one for examples_of in lists for one in examples_of):
        values = getattr(one, "values", None)
        one = values[0] if values else one
        if one.price_raw:
            yield one.price_raw, one.decimal_separator, None if one.amount is None else float(one.amount)


def module(path):
    spec = importlib.util.spec_from_file_location("examples", path)
    examples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    return examples


def dates(folder):
    """Text and date, as (year, month, day, hour, minute), of dateparser's English examples that name a year."""
    path = next(folder.glob("dateparser-*/tests/test_date_parser.py"))
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "param" and len(node.args) == 2):
            continue
        text, when = node.args
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str) and isinstance(when, ast.Call)):
            continue
        if getattr(when.func, "id", "") != "datetime" or not all(isinstance(part, ast.Constant) for part in when.args):
            continue
        parts = [part.value for part in when.args]
        if text.value.isascii() and str(parts[0]) in text.value:
            yield text.value, tuple((parts + [0, 0])[:5])


def compare(name, rows):
    """Counts `rows` of text, what the other reads, and what trawl reads, and prints the differences."""
    equal = refused = 0
    for text, other, own in rows:
        if own == other:
            equal += 1
        elif own is None or own == []:
            refused += 1
            print(f"{name}: no value of {text!r}, which is {other!s:.200}")
        else:
            print(f"{name}: {text!r} is {own!s:.200}, and not {other!s:.200}")
    print(f"{name}: {equal} of {len(rows)} are equal, {refused} have no value, {len(rows) - equal - refused} differ")


def compare_prices(program, folder):
    rows = []
    for mark in (None, ".", ","):
        part = [(text, amount) for text, decimal, amount in prices(folder) if decimal == mark]
        own = read_all(program, f"number{mark or ''}", [text for text, _ in part], folder / "pages")
        rows += [(text, amount, value) for (text, amount), value in zip(part, own, strict=True)]
    compare("price-parser", rows)


def compare_dates(program, folder):
    part = list(dates(folder))
    own = read_all(program, "date", [text for text, _ in part], folder / "pages")

    def parts(value):
        day, _, time = (value or "").partition("T")
        return tuple(int(number) for number in (*day.split("-"), *(time[:5] or "0:0").split(":"))) if day else None

    compare("dateparser", [(text, when, parts(value)) for (text, when), value in zip(part, own, strict=True)])


def normal(url):
    """The form of a URL in which trawl shows it, as far as the fixtures need it."""
    parts = urlsplit(urldefrag(url.strip()).url)
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", parts.query, ""))


def compare_feeds(trawl, folder):
    """The links of feedparser's entries, as far as they are whole URLs of the web, and those that trawl would crawl."""
    root = next(folder.glob("feedparser-*/tests"))
    warnings.simplefilter("ignore")

    def theirs(path):
        links = (entry.get("link", "") for entry in feedparser.parse(path.read_bytes()).entries)
        return [normal(link) for link in links if re.match(r"(?i)https?://", link)]

    def ours(path):
        answer = subprocess.run([trawl, "producer", "-q", "--dry-run", "--json", path], text=True, capture_output=True, check=False)
        return [line["url"] for line in map(json.loads, answer.stdout.splitlines()) if "url" in line]

    feeds = [(path, links) for path in sorted(root.rglob("*.xml")) if (links := theirs(path))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(ours, (path for path, _ in feeds)))
    compare("feedparser", [(str(path.relative_to(root)), links, own) for (path, links), own in zip(feeds, read, strict=True)])


def folded(value):
    """Single spaces in all texts, no empty values, and a list of one value as that value: neither reader is held to these."""
    if isinstance(value, dict):
        members = {name: folded(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member not in (None, "", [], {})}
    if isinstance(value, list):
        values = [folded(one) for one in value]
        return values[0] if len(values) == 1 else values
    return " ".join(value.split()) if isinstance(value, str) else value


def by_type(value, own=None):
    """The objects of JSON-LD by their type, without those within an object of that type."""
    found = {} if own is None else own
    if isinstance(value, dict):
        kinds = value.get("@type", [])
        kinds = {kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if isinstance(kind, str)}
        for kind in kinds:
            found.setdefault(kind, []).append(value)
        for member in value.values():
            within = by_type(member)
            for kind in within.keys() - kinds:
                found.setdefault(kind, []).extend(within[kind])
    for one in value if isinstance(value, list) else []:
        by_type(one, found)
    return found


def as_json_ld(item):
    """An item of extruct's microdata in the form of JSON-LD."""
    if isinstance(item, list):
        return [as_json_ld(one) for one in item]
    if not isinstance(item, dict):
        return item
    names = {"@type": item.get("type"), "@id": item.get("id")}
    properties = {name: as_json_ld(value) for name, value in item.get("properties", {}).items()}
    return {name: value for name, value in names.items() if value} | properties


def short(kind):
    return re.split("[/#:]", kind)[-1]


def compare_structured(program, folder):
    """JSON-LD, microdata and Open Graph of extruct's samples, by each type of a page."""
    root = next(folder.glob("extruct/tests/samples"), None)
    if root is None:
        return
    rows = {"json-ld": [], "microdata": [], "opengraph": []}
    for path in sorted(root.rglob("*.html")):
        page = path.read_bytes()
        try:
            theirs = extruct.extract(page, base_url="https://example.com/", syntaxes=list(rows), errors="ignore")
        except Exception as error:  # noqa: BLE001 - it is another project's
            print(f"extruct: {path.name}: {error!r}")
            continue
        wanted = [("json-ld", f"json_ld={short(kind)}", objects) for kind, objects in by_type(theirs.get("json-ld", [])).items()]
        wanted += [("microdata", f"microdata={short(kind)}", objects) for kind, objects in by_type(as_json_ld(theirs.get("microdata", []))).items()]
        graph = {}
        for of_graph in theirs.get("opengraph", []):
            for name, content in of_graph["properties"]:
                graph.setdefault(name, []).append(content)
        wanted += [("opengraph", f"meta={name}", contents) for name, contents in graph.items() if any(map(str.strip, contents))]
        for syntax, field, objects in wanted:
            own = (read_fields(program, [f"x[]:{field}"], [path])[0] or {}).get("x")
            rows[syntax].append((f"{path.relative_to(root)}: {field}", folded(objects), None if own is None else folded(own)))
    for syntax, of_syntax in rows.items():
        compare(f"extruct {syntax}", of_syntax)


def selectors(path):
    """The texts that a test file gives to functions that select."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        name = isinstance(node, ast.Call) and (getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
        if name in ("pcss", "css", "x", "count", "select_ids"):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


def compare_selectors(program, folder):
    """The selectors of parsel's and cssselect's tests, on the pages of these tests."""
    drama = next(folder.glob("cssselect-*/tests/test_cssselect.py"))
    own = next(folder.glob("parsel-*/tests/test_selector_csstranslator.py"))
    texts = {name: value.value for path in (drama, own) for node in ast.parse(path.read_text("utf-8")).body
             if isinstance(node, ast.Assign) and isinstance(value := node.value, ast.Constant) for name in [node.targets[0].id]}
    rows = []
    for page, path in (("HTML_IDS", drama), ("HTML_SHAKESPEARE", drama), ("HTMLBODY", own)):
        file = folder / f"{page}.html"
        file.write_text(texts[page], "utf-8")
        for css in sorted(set(selectors(path))):
            asked = css if "::" in css else f"{css}::attr(id)" if "," not in css else None
            if asked is None:
                continue
            try:
                values = Selector(text=texts[page], type="html").css(asked).getall()
            except Exception:  # noqa: BLE001 - what parsel refuses is not compared
                continue
            values = [text for text in (" ".join(value.split()) for value in values) if text]
            value = (read_fields(program, [f"x[]={asked}"], [file])[0] or {}).get("x")
            rows.append((f"{page}: {asked}", values, value))
    compare("parsel", rows)


def main(program, trawl, folder):
    compare_prices(program, folder)
    compare_dates(program, folder)
    compare_feeds(trawl, folder)
    compare_structured(program, folder)
    compare_selectors(program, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
