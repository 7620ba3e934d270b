"""Scrapy's own downloader, where the worker's proxy answers in place of a host."""

from __future__ import annotations

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.http import Response

from . import failures


class ByProxy(Downloader):
    """Raises what Scrapy would raise without a proxy, for a host that cannot be reached or is not to be asked."""

    async def _enqueue_request(self, request: Request) -> Response:
        response = await super()._enqueue_request(request)
        # Not of a proxy that the project has chosen itself.
        if "_scheme_proxy" in request.meta and (failure := failures.of_proxy(response)):
            raise failures.exception(failure)
        return response
