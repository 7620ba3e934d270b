"""Ends when the job that crawls has finished."""

import time

import redis
import rq
from jobs import store

while True:
    try:
        if rq.job.Job.fetch("crawl", connection=store).is_finished:
            break
    except (redis.RedisError, rq.exceptions.NoSuchJobError):
        pass
    time.sleep(0.2)
