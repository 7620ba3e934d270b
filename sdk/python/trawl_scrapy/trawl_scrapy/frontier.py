"""Converts a spider's request to a request of trawl's frontier, which a worker downloads at the fleet's pace."""

from __future__ import annotations

import base64
import logging
import re
import urllib.parse
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.settings import default_settings

from .answers import encode

logger = logging.getLogger(__name__)

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
# Keys of `meta` for downloads that trawl does not support. Scrapy stores its settings in the last two.
_OF_DOWNLOADS = ("proxy", "bindaddress", "download_timeout", "download_maxsize")
# Header fields that trawl lets nobody set (docs/handlers.md).
_RESERVED = {
    "user-agent", "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade",
    "http2-settings", "expect", "proxy-authorization", "range", "if-none-match", "if-modified-since",
}  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"|[!-~]|[!-~][\t -~]*[!-~]")
_COOKIE_VALUE = re.compile(r"[!-+\--:<-~]*")
# In bytes: the first is a bit less than a spider's usual `urls.max_length`, the others less than trawl's limits for
# fields and data.
_LONGEST_URL, _MOST_FIELDS, _MOST_BYTES = 2_000, 15_000, 60_000

Pairs = list[tuple[str, str]]


class NotForTrawl(Exception):
    """trawl would not download the request as Scrapy would. The message gives the reason."""


class Frontier:
    """Makes requests of trawl's frontier from a spider's requests."""

    def __init__(self, crawler: Crawler) -> None:
        """The crawler's spider must be open."""
        agent = crawler.get_downloader_middleware(UserAgentMiddleware)
        self._user_agent = (agent and agent.user_agent) or ""
        self._usual = {f"download_{name}": crawler.settings.getfloat(f"DOWNLOAD_{name.upper()}") for name in ("timeout", "maxsize")}
        self._takes_none = _why_none(crawler)
        if self._takes_none:
            logger.info("each request is a task, which Scrapy downloads itself: %s", self._takes_none)
        else:
            logger.info("trawl downloads what it can as Scrapy would (docs/scrapy.md)")
            if self._user_agent and self._user_agent != default_settings.USER_AGENT:
                logger.warning("USER_AGENT is not sent: trawl names itself, as `request.user_agent` of the spider's file says")

    def ask(self, sent: Request, data: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Converts a request prepared by the middlewares to an element of an answer's `urls`, without its `unique`.
        Returns it with its size in bytes. `data` comes back with its page or its failure.

        Raises `NotForTrawl` if it is too large or cannot be sent as it is.
        """
        headers, cookies = self._fields(sent)
        said: dict[str, Any] = {"url": sent.url, "method": sent.method, "headers": headers, "cookies": cookies}
        said["priority"] = sent.priority
        try:
            said["body"] = sent.body.decode()
        except UnicodeDecodeError:
            said["base64"] = base64.b64encode(sent.body).decode()
        said = {**{key: value for key, value in said.items() if value}, "data": data, "any_status": True, "failures": "each"}
        size = len(encode(said).encode(errors="replace"))
        if size > _MOST_BYTES:
            raise NotForTrawl(f"it takes more than {_MOST_BYTES} bytes")
        return said, size

    def check(self, request: Request, written: dict[str, Any]) -> None:
        """Raises `NotForTrawl` if trawl would download a request differently from Scrapy. `written` is the request
        as it travels."""
        if self._takes_none:
            raise NotForTrawl(self._takes_none)
        url = urllib.parse.urlsplit(request.url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
            raise NotForTrawl("its URL is not of http or https, or has a user in it")
        if len(request.url) > _LONGEST_URL:
            raise NotForTrawl(f"its URL has more than {_LONGEST_URL} bytes")
        if request.method not in _METHODS:
            raise NotForTrawl(f"trawl sends no {request.method}")
        meta = written.get("meta", {})
        for name in _OF_DOWNLOADS:
            if name in meta and meta[name] != self._usual.get(name):
                raise NotForTrawl(f"its meta has `{name}`")

    def _fields(self, sent: Request) -> tuple[Pairs, Pairs]:
        headers: Pairs = []
        cookies: Pairs = []
        for name, value in ((_text(name), _text(value)) for name, values in sent.headers.items() for value in values):
            kind = name.lower()
            if kind == "cookie":
                cookies += _cookies(value)
            elif self._is_trawls_own(kind, value, sent):
                continue
            elif kind in _RESERVED:
                raise NotForTrawl(f"it has a header field `{name}` of its own")
            elif _TOKEN.fullmatch(name) and _VALUE.fullmatch(value):
                headers.append((name, value))
            else:
                raise NotForTrawl(f"its header field `{name}` is not plain text")
        if sum(len(name) + len(value) for name, value in headers + cookies) > _MOST_FIELDS:
            raise NotForTrawl(f"its header fields have more than {_MOST_FIELDS} bytes")
        return headers, cookies

    def _is_trawls_own(self, kind: str, value: str, sent: Request) -> bool:
        """Whether Scrapy has set the field for its own downloads, where trawl sets another value."""
        return (
            kind == "accept-encoding"
            or (kind == "user-agent" and value == self._user_agent)
            or (kind == "proxy-authorization" and "_scheme_proxy" in sent.meta)
        )


def _why_none(crawler: Crawler) -> str | None:
    """Returns the reason why trawl downloads none of the spider's requests, or `None` if it does."""
    if crawler.settings.getbool("HTTPCACHE_ENABLED"):
        return "HTTPCACHE_ENABLED is set"
    handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in ("http", "https"):
        handler = handlers.get(scheme)
        name = handler if isinstance(handler, str) else getattr(handler, "__module__", "")
        if not name.startswith("scrapy.core.downloader.handlers."):
            return f"the project has a download handler of its own for {scheme}"
    return None


def _cookies(field: str) -> Pairs:
    pairs = []
    for cookie in field.split("; "):
        name, is_pair, value = cookie.partition("=")
        if not (is_pair and _TOKEN.fullmatch(name) and _COOKIE_VALUE.fullmatch(value)):
            raise NotForTrawl(f"trawl cannot send its cookie `{name}` as it is")
        pairs.append((name, value))
    return pairs


def _text(value: bytes) -> str:
    return value.decode("latin-1")
