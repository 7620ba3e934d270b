"""Ensures that the downloader middlewares process a request (`process_request`) once, as under Scrapy, although
trawl's frontier is between the spider that wants it and its download."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.downloadermiddlewares.stats import DownloaderStats
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.http import Response

from .job import current

_Method = Callable[..., Any]

# Middlewares that only set missing values can run twice, so the values they set need not travel.
_FILLS_IN = (DefaultHeadersMiddleware, DownloadTimeoutMiddleware, HttpCompressionMiddleware, UserAgentMiddleware)
# Middlewares for the download itself, which may happen in another process with another proxy.
_AT_DOWNLOAD = (DownloaderStats, HttpProxyMiddleware, RobotsTxtMiddleware)


class HandedOver(BaseException):
    """Stops a request on its way through the middlewares where its download would start. No middleware catches it."""


class Stages:
    """Makes a spider's middlewares process a request before it is handed to the frontier. Only those for the
    download itself process it later."""

    def __init__(self, manager: DownloaderMiddlewareManager) -> None:
        """The spider must be open, and must not have downloaded anything."""
        self._manager = manager
        methods = manager.methods["process_request"]
        self._fill_in = [method for method in methods if method is not None and _is_scrapys(method, _FILLS_IN)]
        for number, method in enumerate(methods):
            if method is not None and method not in self._fill_in:
                methods[number] = self._staged(method)

    def _staged(self, method: _Method) -> _Method:
        is_at_download, is_robots = _is_scrapys(method, _AT_DOWNLOAD), _is_scrapys(method, (RobotsTxtMiddleware,))

        @wraps(method)
        def process_request(request: Request, **more: Any) -> Any:
            job = current.get()
            if job is not None:
                was_here = request is job.handing_over if is_at_download else job.is_prepared(request)
                # trawl has already checked robots.txt for its own downloads.
                if was_here or (is_robots and request is job.downloaded):
                    return None
            return method(request=request, **more)

        spider_arguments: set[_Method] = self._manager._mw_methods_requiring_spider
        if method in spider_arguments:
            spider_arguments.add(process_request)
        return process_request

    async def prepare(self, request: Request) -> Response | Request:
        """Passes a request of the current job to the middlewares. Raises `HandedOver` once all have processed it.
        If a middleware replaces the download, returns or raises its result, after Scrapy's usual processing."""
        job = current.get()
        assert job is not None

        async def download(_: Request) -> Response:
            raise HandedOver

        before, job.handing_over = job.handing_over, request
        try:
            return await self._manager.download_async(download, request)
        finally:
            job.handing_over = before

    def usual(self) -> Request:
        """Returns a request with only the values that the middlewares fill in."""
        blank = Request("data:,")
        for method in self._fill_in:
            method(request=blank)
        return blank


def _is_scrapys(method: _Method, kinds: tuple[type, ...]) -> bool:
    """Whether a method belongs to one of Scrapy's own middlewares, and not to a subclass in a project."""
    return isinstance(getattr(method, "__self__", None), kinds) and method.__module__.startswith("scrapy.downloadermiddlewares.")
