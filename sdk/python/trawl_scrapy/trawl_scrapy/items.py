"""Items in the form of Scrapy's feeds."""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.exporters import PythonItemExporter


class Items:
    """Makes the fields of a crawler's scraped items."""

    def __init__(self, crawler: Crawler) -> None:
        self._exporter = PythonItemExporter(fields_to_export=crawler.settings.getdictorlist("FEED_EXPORT_FIELDS") or None)

    def fields(self, scraped: Any) -> dict[str | bytes, Any]:
        """Returns the fields of an item. Values are built-in types, or types that `answers.encode` can write."""
        return self._exporter.export_item(scraped)
