"""Converts a request of Scrapy to JSON and back, with its data and the names of its callbacks."""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

from . import typed_json

# Default values of `Request`, which need not be written.
_DEFAULTS: dict[str, Any] = Request("data:,").to_dict()
# Values that `HttpProxyMiddleware` adds for this worker's proxy, which is not that of another worker.
_OF_PROXY = ("_scheme_proxy", "_auth_proxy", "proxy")


def write(request: Request, spider: Spider, usual: Request | None = None) -> dict[str, Any]:
    """Returns `request` for `json.dumps`, without the header fields and `meta` that equal those of `usual`. Raises
    `ValueError` if a callback is no method of `spider`, or a value cannot be written as JSON."""
    fields = {name: value for name, value in request.to_dict(spider=spider).items() if name == "url" or value != _DEFAULTS.get(name)}
    if not fields.get("cookies"):
        fields.pop("cookies", None)
    headers, meta = fields.pop("headers", {}), fields.pop("meta", {})
    if usual is not None:
        headers = {name: values for name, values in headers.items() if values != usual.headers.getlist(name)}
        meta = {name: value for name, value in meta.items() if name not in usual.meta or value != usual.meta[name]}
    headers = {_text(name): [_text(value) for value in values] for name, values in headers.items()}
    if "_scheme_proxy" in meta:
        meta = {name: value for name, value in meta.items() if name not in _OF_PROXY}
        headers.pop("Proxy-Authorization", None)
    fields.update({name: value for name, value in (("meta", meta), ("headers", headers)) if value})
    if isinstance(body := fields.get("body"), bytes):
        try:
            fields["body"] = body.decode()
        except UnicodeDecodeError:
            pass
    written: dict[str, Any] = typed_json.write(fields)
    return written


def read(written: dict[str, Any], spider: Spider) -> Request:
    """Returns the request written by `write`, for the same spider. Raises an exception that says what is wrong with
    it."""
    fields = typed_json.read(written)
    if kind := fields.get("_class"):
        found = load_object(kind)
        if not (isinstance(found, type) and issubclass(found, Request)):
            raise ValueError(f"{kind} is no class of requests")
    return request_from_dict(fields, spider=spider)


def _text(value: bytes) -> str:
    return value.decode("latin-1")
