"""Ends when the crawl has said that it is done."""

import time

import redis
from tasks import store

while True:
    try:
        if store.exists("done"):
            break
    except redis.RedisError:
        pass
    time.sleep(0.2)
