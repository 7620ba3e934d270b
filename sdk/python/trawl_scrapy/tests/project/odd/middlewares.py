import asyncio
from urllib.parse import urlsplit

from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse


class Own:
    """A downloader middleware with every behaviour that is allowed, selected by the path of the request."""

    async def process_request(self, request):
        path = urlsplit(request.url).path
        await asyncio.sleep(0)
        request.headers["X-Seen"] = str(int(request.headers.get("X-Seen", 0)) + 1)
        if path == "/mw/response":
            return HtmlResponse(request.url, body=b"of a middleware", request=request)
        if path == "/mw/request":
            return request.replace(url=request.url.replace("/mw/request", "/other"))
        if path == "/mw/ignore":
            raise IgnoreRequest("not this one")
        if path == "/mw/raises":
            raise ValueError("a middleware raises")
        if path == "/mw/object":
            request.meta["object"] = object()
        return None

    def process_response(self, request, response):
        request.meta["answered"] = request.meta.get("answered", 0) + 1
        return response

    def process_exception(self, request, exception):
        if request.meta.get("replaced"):
            return HtmlResponse(request.url, status=200, body=type(exception).__name__.encode(), request=request)
        return None
