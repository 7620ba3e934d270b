"""Scrapy's own downloader, adapted to the worker's proxy answering in place of a host."""

from __future__ import annotations

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.http import Response

from . import failures


class ByProxy(Downloader):
    """Raises the exception that Scrapy would raise without a proxy, for a host that cannot be reached or may not be
    requested."""

    async def _enqueue_request(self, request: Request) -> Response:
        response = await super()._enqueue_request(request)
        # Not for a proxy that the project itself has chosen.
        if "_scheme_proxy" in request.meta and (failure := failures.of_proxy(response)):
            raise failures.exception(failure)
        return response
