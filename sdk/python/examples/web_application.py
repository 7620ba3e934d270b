"""A web application that starts crawls of sites, and is told when a crawl is over, however many pages it has.

`POST /crawls` with a URL as its body starts a crawl; `GET /crawls/<id>` returns whether it is over.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trawl

client = trawl.Client(os.environ["TRAWL_URL"])
ended = {}  # crawl: how many pages it has; in earnest, a table


class Application(BaseHTTPRequestHandler):
    def do_GET(self):
        crawl = self.path.removeprefix("/crawls/")
        self.answer(200, {"over": crawl in ended, "pages": ended.get(crawl)})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/crawls":
            crawl = client.start("whole-site", args={"start": body.decode()})
            return self.answer(202, {"crawl": crawl.id})
        try:
            event = trawl.event(body, self.headers, os.environ["TRAWL_WEBHOOK_SECRET"])
        except trawl.Forged as error:
            return self.answer(403, {"error": str(error)})
        ended[event["crawl"]] = event["done"]  # a repeated event changes nothing
        self.answer(200, {})

    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Application).serve_forever()
