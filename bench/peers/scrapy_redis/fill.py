"""Pushes every URL as a start URL, in the JSON form that scrapy-redis asks for."""

import json
import os

import redis

KEY = "pages:start_urls"


def main():
    with open(os.environ["URLS"], encoding="utf-8") as lines:
        urls = [line.strip() for line in lines if line.strip()]
    server = redis.Redis.from_url(os.environ["REDIS_URL"])
    server.delete(KEY, "pages:requests", "pages:dupefilter")
    server.rpush(KEY, *(json.dumps({"url": url}) for url in urls))
    print(f"{len(urls)} URLs are in {KEY}")


if __name__ == "__main__":
    main()
