"""One worker: takes a URL, fetches it, writes its item, acknowledges it, and takes the next. Ends after COUNT messages."""

import json
import os
from urllib.parse import urljoin

import lxml.html
import pika
import requests
from requests.adapters import HTTPAdapter

PREFETCH = int(os.environ.get("PREFETCH", "100"))
HOSTS = 64
TIMEOUT = 30


def http_session():
    session = requests.Session()
    # No look for proxies and .netrc before each request, and a kept connection for each host, not for 10 only.
    session.trust_env = False
    session.mount("http://", HTTPAdapter(pool_connections=HOSTS))
    session.mount("https://", HTTPAdapter(pool_connections=HOSTS))
    return session


def item(url, response):
    page = lxml.html.document_fromstring(response.content, parser=lxml.html.HTMLParser(encoding="utf-8"))
    return {
        "url": url,
        "title": (page.findtext(".//title") or "").strip(),
        "links": [urljoin(response.url, href) for href in page.xpath("//a/@href")],
    }


def main():
    count = int(os.environ["COUNT"])
    session = http_session()
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URL"]))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=PREFETCH)
    # Line-buffered: the item has left the process before its message is acknowledged.
    with open(os.environ["OUT"], "w", buffering=1, encoding="utf-8") as out:
        for done, (method, _, body) in enumerate(channel.consume(os.environ["QUEUE"]), 1):
            url = body.decode()
            response = session.get(url, timeout=TIMEOUT)
            response.raise_for_status()
            out.write(json.dumps(item(url, response), ensure_ascii=False) + "\n")
            channel.basic_ack(method.delivery_tag)
            if done == count:
                break
    connection.close()


if __name__ == "__main__":
    main()
