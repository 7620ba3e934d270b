"""Compares trawl's numbers and dates with price-parser and dateparser on the fixtures of these projects: `scripts/parsel-diff` runs it.

usage: readers_diff.py PROGRAM FOLDER, where FOLDER has the unpacked source archives. `scripts/readers-diff.md` decides on the differences.
"""

import ast
import html
import importlib.util
import json
import subprocess
import sys
from pathlib import Path


def read_all(program, kind, texts, folder):
    """The value that trawl reads of each text, alone in an element."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.html" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(f"<!doctype html><meta charset=utf-8><p>{html.escape(text)}</p>", "utf-8")
    names = "".join(f"{path}\n" for path in paths)
    answer = subprocess.run([program, f"x:{kind}=p"], input=names, text=True, capture_output=True, check=True)
    return [json.loads(line)["fields"]["x"] for line in answer.stdout.splitlines()]


def prices(folder):
    """Text, decimal mark and amount of each of price-parser's examples."""
    path = next(folder.glob("price_parser-*/tests/test_price_parsing.py"))
    spec = importlib.util.spec_from_file_location("examples", path)
    examples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    lists = [value for name, value in vars(examples).items() if name.startswith("PRICE_PARSING_") and isinstance(value, list)]
    for one in (one for examples_of in lists for one in examples_of):
        values = getattr(one, "values", None)
        one = values[0] if values else one
        if one.price_raw:
            yield one.price_raw, one.decimal_separator, None if one.amount is None else float(one.amount)


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
        elif own is None:
            refused += 1
            print(f"{name}: no value of {text!r}, which is {other}")
        else:
            print(f"{name}: {text!r} is {own}, and not {other}")
    print(f"{name}: {equal} of {len(rows)} are equal, {refused} have no value, {len(rows) - equal - refused} differ")


def main(program, folder):
    rows = []
    for mark in (None, ".", ","):
        part = [(text, amount) for text, decimal, amount in prices(folder) if decimal == mark]
        own = read_all(program, f"number{mark or ''}", [text for text, _ in part], folder / "pages")
        rows += [(text, amount, value) for (text, amount), value in zip(part, own, strict=True)]
    compare("price-parser", rows)
    part = list(dates(folder))
    own = read_all(program, "date", [text for text, _ in part], folder / "pages")

    def parts(value):
        day, _, time = (value or "").partition("T")
        return tuple(int(number) for number in (*day.split("-"), *(time[:5] or "0:0").split(":"))) if day else None

    compare("dateparser", [(text, when, parts(value)) for (text, when), value in zip(part, own, strict=True)])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
