"""Converts a page downloaded by trawl to a response of Scrapy."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

from scrapy import Request
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes


def response(page: dict[str, Any], request: Request) -> Response:
    """Returns the response as Scrapy's downloader would, except for its content coding, which trawl has already
    decoded."""
    headers = Headers()
    for name, value in page["headers"]:
        if name != "content-encoding":
            headers.appendlist(name, value)
    body, url = _body(page), urldefrag(request.url).url
    kind = responsetypes.from_args(headers=headers, url=url, body=body)
    return kind(url=url, status=page["status"], headers=headers, body=body)


def _body(page: dict[str, Any]) -> bytes:
    if "file" in page:
        return Path(page["file"]).read_bytes()
    if "base64" in page:
        return base64.b64decode(page["base64"])
    return str(page["text"]).encode()
