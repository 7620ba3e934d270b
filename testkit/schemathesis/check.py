"""schemathesis against `trawl api` and a fleet: whatever is sent to a path of the document, no answer has a status of 5xx, and each has a
status, a content type, headers and a body that the document names. Run by scripts/schemathesis, which starts the servers."""

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from checks import TOKEN, Fleet, Site, until

# The same requests each time; more than enough to send some to every path, in about three minutes.
SEED, EXAMPLES, SECONDS = 20_260_101, 40, 180
# Longer than any answer may take: a trial has a minute.
ANSWER_SECONDS = 75

CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance"]

# What is there to be found: of texts that are made up nearly all are none of it.
CONFIGURATION = """
[dictionaries]
crawls = {{ values = {crawls} }}
ended = {{ values = {ended} }}
hosts = {{ values = {hosts} }}
urls = {{ values = {urls} }}
quick = {{ values = {quick} }}
cursors = {{ values = {cursors} }}
waits = {{ values = ["0s", "100ms", "1s"] }}
spiders = {{ values = ["default", "none"] }}

[parameters]
"path.id" = {{ dictionary = "crawls", probability = 0.7 }}
"path.host" = {{ dictionary = "hosts", probability = 0.5 }}
"query.crawl" = {{ dictionary = "crawls", probability = 0.5 }}
"query.url" = {{ dictionary = "urls", probability = 0.7 }}
"query.cursor" = {{ dictionary = "cursors", probability = 0.3 }}
"query.wait" = {{ dictionary = "waits", probability = 1.0 }}
"query.spider" = {{ dictionary = "spiders", probability = 0.5 }}
"body.crawl" = {{ dictionary = "crawls", probability = 0.5 }}
"body.urls[*]" = {{ dictionary = "urls", probability = 0.5 }}
"body.spider" = {{ dictionary = "spiders", probability = 0.5 }}

# To try a page that waits takes half a minute.
[[operations]]
include-operation-id = "try_spider"
parameters = {{ "body.url" = {{ dictionary = "quick", probability = 0.7 }} }}

# Who follows a crawl that runs is told no end.
[[operations]]
include-operation-id = "follow_crawl"
parameters = {{ "path.id" = {{ dictionary = "ended", probability = 0.7 }} }}
"""


class Caller:
    def __init__(self, fleet):
        self.url = f"{fleet.url}/api/v1"

    def call(self, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body else None)
        request.add_header("authorization", f"Bearer {TOKEN}")
        request.add_header("content-type", "application/json")
        return json.load(urllib.request.urlopen(request))

    def start(self, urls):
        return self.call("/crawls", {"urls": urls})["crawl"]


def configure(api, site, path):
    """Makes a crawl that has ended, with a page and a dead letter, and one that runs; and tells of them."""
    over = api.start(site.urls(["/page", "/missing"]))
    until("it is over", lambda: api.call(f"/crawls/{over}")["over"])
    running = api.start(site.urls(["/running/slow"]))
    until("it runs", lambda: api.call(f"/crawls/{running}")["status"] == "running")
    cursors = [api.call(f"{list_}?limit=1").get("next") for list_ in ("/crawls", "/hosts", f"/crawls/{over}/items")]
    path.write_text(
        CONFIGURATION.format(
            crawls=json.dumps([over, running, "none"]),
            ended=json.dumps([over, "none"]),
            hosts=json.dumps([urllib.parse.urlsplit(site.origin).netloc, "none.example"]),
            urls=json.dumps(site.urls(["/page", "/missing", "/running/slow", "/new"])),
            quick=json.dumps(site.urls(["/page", "/missing"])),
            cursors=json.dumps([cursor for cursor in cursors if cursor] + ["wrong"]),
        )
    )


def main():
    site, fleet = Site(), Fleet(workers=1)
    try:
        configuration = Path(fleet.folder.name) / "schemathesis.toml"
        configure(Caller(fleet), site, configuration)
        told = subprocess.run(
            [
                os.environ["SCHEMATHESIS"], "--no-color", "--config-file", configuration, "run",
                f"{fleet.url}/api/v1/openapi.json",
                f"--header=Authorization:Bearer {TOKEN}", f"--checks={','.join(CHECKS)}", f"--seed={SEED}",
                f"--max-examples={EXAMPLES}", f"--max-time={SECONDS}", "--phases=examples,coverage,fuzzing",
                "--continue-on-failure", "--rate-limit=80/s", f"--request-timeout={ANSWER_SECONDS}", "--warnings=off", "--generation-database=none",
                *sys.argv[1:],
            ],
            cwd=fleet.folder.name,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(Path(__file__).parent)},
        )
        sys.exit(told.returncode)
    finally:
        site.goes_on.set()
        fleet.end()


main()
