"""Runs unmodified Scrapy projects as handlers of trawl.

`trawl-scrapy run` is a handler of mode `once`: each task is a whole run of a spider. `trawl-scrapy serve` is a
handler of mode `stream`: each request of a spider becomes a request of trawl's frontier. docs/scrapy.md describes
both.
"""
