"""A crawl by tasks that send tasks, with a record of each page (status 0 or 1), by which the last one knows the end.

https://docs.celeryq.dev/en/stable/userguide/tasks.html: `rate_limit`, automatic retries, and with LATE=1 `acks_late`,
which it advises for tasks that may run twice, and `reject_on_worker_lost`.
"""

import os
import re

import celery
import redis
import requests

LATE = os.environ["LATE"] == "1"
LINK = re.compile(r'href="(http[^"]+)"')

app = celery.Celery("tasks", broker=os.environ["RABBITMQ_URL"])
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
store = redis.Redis.from_url(os.environ["REDIS_URL"])


# The rate is one worker's: Celery has none for a host.
@app.task(rate_limit="10/s", autoretry_for=(requests.RequestException, redis.RedisError), retry_backoff=True,
          acks_late=LATE, reject_on_worker_lost=LATE)
def download(url):
    response = requests.get(url, timeout=30)
    response.raise_for_status()
    for link in LINK.findall(response.text):
        if store.hsetnx("pages", link, 0):
            download.delay(link)
    store.hset("pages", url, 1)
    if b"0" not in store.hvals("pages"):
        store.set("done", 1)
