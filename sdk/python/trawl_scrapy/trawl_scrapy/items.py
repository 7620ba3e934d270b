"""Items as Scrapy's feeds have them."""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.exporters import PythonItemExporter


class Items:
    """Makes the fields of what a crawler has scraped."""

    def __init__(self, crawler: Crawler) -> None:
        self._exporter = PythonItemExporter(fields_to_export=crawler.settings.getdictorlist("FEED_EXPORT_FIELDS") or None)

    def fields(self, scraped: Any) -> dict[str | bytes, Any]:
        """Values are built-in, or such as `answers.encode` writes."""
        return self._exporter.export_item(scraped)
