"""Cookies that travel with the requests of a session instead of staying in one process."""

from __future__ import annotations

from collections import defaultdict
from http.cookiejar import Cookie
from typing import Any

from scrapy.http.cookies import CookieJar

from . import typed_json

Jars = defaultdict[Any, CookieJar]


def write(jars: Jars) -> list[Any]:
    """Returns all cookies by the `cookiejar` of their requests, for `json.dumps`."""
    return [[typed_json.write(key), [typed_json.write(vars(cookie)) for cookie in jar]] for key, jar in jars.items() if len(jar)]


def read(written: list[Any]) -> Jars:
    """Returns the jars written by `write`."""
    jars: Jars = defaultdict(CookieJar)
    for key, cookies in written:
        for attributes in cookies:
            fields = typed_json.read(attributes)
            jars[typed_json.read(key)].set_cookie(Cookie(**{name.removeprefix("_"): value for name, value in fields.items()}))
    return jars
