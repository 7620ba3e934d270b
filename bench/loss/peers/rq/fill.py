"""Sends the job that crawls, which may take any time."""

import os

import rq
from jobs import RETRY, crawl, store

rq.Queue("crawls", connection=store).enqueue(crawl, os.environ["SEED"], job_id="crawl", job_timeout=-1, retry=RETRY)
