"""Sends the first task."""

import os

from tasks import download, store

store.hset("pages", os.environ["SEED"], 0)
download.delay(os.environ["SEED"])
