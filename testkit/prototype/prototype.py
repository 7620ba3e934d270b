"""What both programs of the prototype begin with: where the servers are, and the queues that each of them declares.

Where they connect to comes from RABBITMQ_URL and REDIS_URL, so that they can be tried on private servers; the rest is the
prototype's."""

import os

import pika
import redis

MINUTE = 60 * 1000


def connect():
    r = redis.Redis.from_url(os.getenv("REDIS_URL", "redis://localhost:6379/0"))
    url = os.getenv("RABBITMQ_URL", "amqp://admin:password@localhost:5672/%2f")
    connection = pika.BlockingConnection(pika.URLParameters(url))
    return r, connection.channel()


def declare(channel):
    channel.exchange_declare(exchange="failed_exchange", exchange_type="direct")
    channel.queue_declare(queue="failed_urls", durable=True, arguments={"x-message-ttl": 86400000})  # 24 hours
    channel.queue_bind(exchange="failed_exchange", queue="failed_urls", routing_key="failed")
    channel.queue_declare(queue="url_queue")
    channel.queue_declare(queue="url_queue_ttl", durable=True, arguments={"x-message-ttl": 3600000})  # 1 hour
    channel.queue_declare(queue="priority_queue", durable=True, arguments={"x-message-ttl": 1800000})  # 30 min
