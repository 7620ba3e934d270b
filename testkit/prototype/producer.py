"""The prototype's producer: adds each URL to the set `crawled_urls`, and publishes what was not in it. Reads a URL a line."""

import sys

import pika
from prototype import MINUTE, connect, declare


def main():
    r, channel = connect()
    declare(channel)
    for url in sys.stdin.read().split():
        is_new = r.sadd("crawled_urls", url)
        if not is_new:
            print(f"Already crawled: {url}", flush=True)
            continue
        if "httpbin.org" in url:
            ttl_ms = 5 * MINUTE
            queue_name = "priority_queue"
        elif "news" in url or "live" in url:
            ttl_ms = 30 * MINUTE
            queue_name = "priority_queue"
        elif "plain" in url:
            ttl_ms = None
            queue_name = "url_queue"
        else:
            ttl_ms = None
            queue_name = "url_queue_ttl"

        properties = None
        if ttl_ms:
            properties = pika.BasicProperties(expiration=str(ttl_ms))

        channel.basic_publish(exchange="", routing_key=queue_name, body=url, properties=properties)
        print(f"Sent: {url}", flush=True)


main()
