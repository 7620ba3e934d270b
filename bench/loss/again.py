"""Publishes once more each message that waits in the queues named after the URL of RabbitMQ; prints how many.

Runs with the AMQP client of Celery's environment: RabbitMQ's HTTP API changes headers without a value.
"""

import sys
import urllib.parse

import amqp


def main():
    url, *queues = sys.argv[1:]
    parts = urllib.parse.urlsplit(url)
    with amqp.Connection(f"{parts.hostname}:{parts.port}", parts.username, parts.password) as connection:
        waiting = [(queue, message) for queue in queues for message in take(connection.channel(), queue)]
        copies = connection.channel()
        for queue, message in waiting:
            copies.basic_publish_confirm(amqp.Message(message.body, **message.properties), "", queue)
        print(len(waiting))
    # With the connection the messages go back where they were.


def take(channel, queue):
    while message := channel.basic_get(queue):
        yield message


if __name__ == "__main__":
    main()
