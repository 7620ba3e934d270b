"""When the downloader middlewares look at a request (`process_request`): once, as under Scrapy, though trawl's frontier lies between the spider that wants
it and its download."""

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

# What only fills in what is missing may do so twice: what it has filled in need not travel.
_FILLS_IN = (DefaultHeadersMiddleware, DownloadTimeoutMiddleware, HttpCompressionMiddleware, UserAgentMiddleware)
# What is about the download itself, by whichever process and proxy.
_AT_DOWNLOAD = (DownloaderStats, HttpProxyMiddleware, RobotsTxtMiddleware)


class HandedOver(BaseException):
    """Ends the way of a request through the middlewares where its download would begin. No middleware catches it."""


class Stages:
    """Has the middlewares of a spider look at a request before it is handed to the frontier, but for those that are about the download: these look at
    it then, and no others."""

    def __init__(self, manager: DownloaderMiddlewareManager) -> None:
        """Of a spider that is open, before it has downloaded anything."""
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
                # What trawl has downloaded it has asked robots.txt for itself.
                if was_here or (is_robots and request is job.downloaded):
                    return None
            return method(request=request, **more)

        spider_arguments: set[_Method] = self._manager._mw_methods_requiring_spider
        if method in spider_arguments:
            spider_arguments.add(process_request)
        return process_request

    async def prepare(self, request: Request) -> Response | Request:
        """Has the middlewares look at a request of the current job. Raises `HandedOver` when all of them have; else returns or raises what one of them
        has in place of a download, after all that Scrapy has follow from that."""
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
        """What the middlewares fill in, in a request that has nothing."""
        blank = Request("data:,")
        for method in self._fill_in:
            method(request=blank)
        return blank


def _is_scrapys(method: _Method, kinds: tuple[type, ...]) -> bool:
    """Whether it is a method of one of Scrapy's own middlewares, and not one of a project that is derived from it."""
    return isinstance(getattr(method, "__self__", None), kinds) and method.__module__.startswith("scrapy.downloadermiddlewares.")
