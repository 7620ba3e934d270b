from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler


class Own(HTTP11DownloadHandler):
    """A download handler defined by the project."""
