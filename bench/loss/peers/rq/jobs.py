"""One job that keeps the list of pages and knows the end, and one job for each page, which returns its links.

https://python-rq.org/docs/exceptions/: `Retry`; https://python-rq.org/docs/jobs/: `job_timeout`.
"""

import os
import re
import time

import redis
import requests
import rq

LINK = re.compile(r'href="(http[^"]+)"')
RETRY = rq.Retry(max=3, interval=[10, 30, 60])

store = redis.Redis.from_url(os.environ["REDIS_URL"])


def crawl(seed):
    fetches = rq.Queue("fetches", connection=store)
    seen, jobs = {seed}, [fetches.enqueue(fetch, seed, retry=RETRY)]
    while jobs:
        for job in list(jobs):
            status = job.get_status()
            if status in ("finished", "failed", None):
                jobs.remove(job)
            for link in (job.return_value() or []) if status == "finished" else []:
                if link not in seen:
                    seen.add(link)
                    jobs.append(fetches.enqueue(fetch, link, retry=RETRY))
        time.sleep(1)


def fetch(url):
    # RQ limits how many jobs run, not how often: a worker, which does one at a time, waits.
    time.sleep(0.1)
    response = requests.get(url, timeout=30)
    response.raise_for_status()
    return LINK.findall(response.text)
