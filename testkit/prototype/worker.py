"""The prototype's worker: takes URLs from its queues, keeps to a rate, looks into the cache, fetches, counts failures, and sends
what failed three times to `failed_urls`."""

import time
from urllib.parse import urlparse

import requests
from prototype import connect, declare

MAX_RETRIES = 3
MAX_PER_MINUTE = 1000

r, channel = connect()


def is_valid(url):
    parsed = urlparse(url)
    return parsed.scheme in ("http", "https") and bool(parsed.netloc)


def wait_for_turn(url):
    domain = urlparse(url).netloc
    while True:
        rate_limit_key = f"ratelimit:{domain}:{int(time.time() // 60)}"
        asked = r.incr(rate_limit_key)
        r.expire(rate_limit_key, 60)
        if asked <= MAX_PER_MINUTE:
            return
        time.sleep(1)


def scrape(url):
    cache_key = f"content:{url}"
    cached_content = r.get(cache_key)
    if cached_content:
        print(f"Cached: {url}", flush=True)
        return
    wait_for_turn(url)
    response = requests.get(url, timeout=10)
    response.raise_for_status()
    r.setex(cache_key, 60, response.text)  # Cache for 60 seconds


def fail(url, error):
    failure_key = f"failures:{url}"
    failure_count = r.incr(failure_key)
    print(f"{type(error).__name__}: {url}", flush=True)
    if failure_count >= MAX_RETRIES:
        print(f"Max retries exceeded - sending to DLQ {url}", flush=True)
        channel.basic_publish(exchange="failed_exchange", routing_key="failed", body=url)
    else:
        print(f"retrying later (attempt {failure_count}/{MAX_RETRIES}): {url}", flush=True)
        channel.basic_publish(exchange="", routing_key="url_queue", body=url)


def process(url):
    print(f"Processing URL: {url}", flush=True)
    if not is_valid(url):
        print(f"Invalid URL: {url}", flush=True)
        channel.basic_publish(exchange="failed_exchange", routing_key="failed", body=url)
        return
    try:
        scrape(url)
        print(f"Finished processing: {url}", flush=True)
    except requests.exceptions.RequestException as error:
        fail(url, error)


def process_url(ch, method, properties, body):
    process(body.decode("utf-8"))
    ch.basic_ack(delivery_tag=method.delivery_tag)


def process_url_auto_ack(ch, method, properties, body):
    """Auto Acknowledgement processing"""
    url = body.decode("utf-8")
    print(f"AUTO-ACK processing {url}", flush=True)
    process(url)


declare(channel)
channel.basic_consume(queue="url_queue", on_message_callback=process_url, auto_ack=False)
channel.basic_consume(queue="url_queue_ttl", on_message_callback=process_url, auto_ack=False)
channel.basic_consume(queue="priority_queue", on_message_callback=process_url_auto_ack, auto_ack=True)
print("starting to listen for messages...", flush=True)
channel.start_consuming()
