"""Declares the queue (durable, quorum) and publishes every URL persistently, each one confirmed by the broker."""

import os

import pika


def main():
    with open(os.environ["URLS"], encoding="utf-8") as lines:
        urls = [line.strip() for line in lines if line.strip()]
    queue = os.environ["QUEUE"]
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URL"]))
    channel = connection.channel()
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_purge(queue)
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
    for url in urls:
        channel.basic_publish("", queue, url.encode(), persistent, mandatory=True)
    connection.close()
    print(f"{len(urls)} URLs are in {queue}")


if __name__ == "__main__":
    main()
