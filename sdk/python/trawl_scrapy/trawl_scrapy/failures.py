"""Converts the failure of a page, or of the worker's proxy, to the exception that Scrapy's own downloader would
raise."""

from __future__ import annotations

from typing import Any

import scrapy.exceptions
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.internet import defer, error
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed, ResponseNeverReceived

# Classes of requests that are not allowed, for example by robots.txt.
_REFUSED = {"forbidden"}
# The errors in the worker's proxy's own answers (docs/handlers.md). If a host may only be requested later, the status
# 503 is left to RetryMiddleware.
_OF_PROXY = {
    "destination_ip_prohibited": "forbidden",
    "http_request_denied": "forbidden",
    "dns_error": "dns",
    "tls_protocol_error": "tls",
    "http_response_timeout": "timeout",
    "destination_unavailable": "connect",
}


def of_proxy(response: Response) -> dict[str, Any] | None:
    """Returns the failure reported by an answer of the worker's proxy, or `None` for other answers."""
    name, _, error = (response.headers.get("Proxy-Status") or b"").decode("latin-1").partition("; error=")
    if name != "trawl" or error not in _OF_PROXY:
        return None
    detail = response.body.decode(errors="replace").strip()
    return {"class": _OF_PROXY[error], "skipped": False, "detail": detail}


def exception(failure: dict[str, Any]) -> Exception:
    """Returns the exception for the `failure` of a page."""
    kind, detail = failure["class"], str(failure["detail"])
    if failure["skipped"] or kind in _REFUSED:
        return IgnoreRequest(f"{kind}: {detail}")
    if kind == "connect" and "refused" in detail.lower():
        kind = "refused"
    name, cause = _of_scrapy(kind, detail)
    # Older versions of Scrapy do not wrap the exceptions of Twisted.
    if (own := getattr(scrapy.exceptions, name, None)) is None:
        return cause
    raised: Exception = own(detail)
    raised.__cause__ = cause
    return raised


def _of_scrapy(kind: str, detail: str) -> tuple[str, Exception]:
    if kind == "dns":
        return "CannotResolveHostError", error.DNSLookupError(detail)
    if kind == "refused":
        return "DownloadConnectionRefusedError", error.ConnectionRefusedError(detail)  # type: ignore[no-untyped-call]
    if kind == "timeout":
        return "DownloadTimeoutError", error.TimeoutError(detail)  # type: ignore[no-untyped-call]
    if kind == "size":
        return "DownloadCancelledError", defer.CancelledError(detail)
    lost = [Failure(error.ConnectionLost(f"{kind}: {detail}"))]  # type: ignore[no-untyped-call]
    if kind == "body":
        return "ResponseDataLossError", ResponseFailed(lost)  # type: ignore[no-untyped-call]
    return "DownloadFailedError", ResponseNeverReceived(lost)  # type: ignore[no-untyped-call]
