"""Gives the spiders their start URL."""

import json
import os

import redis

redis.Redis.from_url(os.environ["REDIS_URL"]).lpush("pages:start_urls", json.dumps({"url": os.environ["SEED"]}))
