"""The Scrapy project that a handler runs."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from scrapy.settings import Settings, default_settings
from scrapy.spiderloader import SpiderLoaderProtocol
from scrapy.utils.project import get_project_settings, inside_project


class NoProject(Exception):
    """There is no project, or it cannot be read. The message says what to change."""


def enter(folder: str) -> Settings:
    """Changes to `folder`, which has the project's `scrapy.cfg`. Requests go through the worker's proxy if there is
    one."""
    path = Path(folder)
    if not path.is_dir():
        raise NoProject(f"{folder} is no folder: name the one of scrapy.cfg, such as `trawl-scrapy run ../my_project`")
    os.chdir(path)
    if not inside_project():
        raise NoProject(f"{path.resolve()} has no scrapy.cfg whose settings can be imported: name the project's folder")
    sys.path.insert(0, os.getcwd())
    if proxy := os.environ.get("TRAWL_PROXY"):
        # The names that `HttpProxyMiddleware` reads.
        os.environ.update(http_proxy=proxy, https_proxy=proxy)
        os.environ.pop("no_proxy", None)
        os.environ.pop("NO_PROXY", None)
    # Prevents a download of a list of domains, which no spider has requested.
    logging.getLogger("tldextract").setLevel(logging.CRITICAL)
    settings = get_project_settings()
    if proxy and settings["DOWNLOADER"] == default_settings.DOWNLOADER:
        settings.set("DOWNLOADER", "trawl_scrapy.downloader.ByProxy", priority="cmdline")
    return settings


def unknown(spider: str, loader: SpiderLoaderProtocol) -> str:
    """Returns the message for a spider that the project lacks."""
    names = ", ".join(sorted(loader.list())) or "none"
    return f"the project in {os.getcwd()} has no spider `{spider}`; there are: {names}"
