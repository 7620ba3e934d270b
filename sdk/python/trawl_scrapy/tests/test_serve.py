"""`trawl-scrapy serve` and `trawl-scrapy run` as a worker runs them: a project of unusual callbacks, case by case."""

import asyncio
import contextlib
import datetime
import gzip
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
from collections import Counter
from pathlib import Path

import scrapy.exceptions
from scrapy.utils.serialize import ScrapyJSONEncoder

from trawl_scrapy.job import Job
from trawl_scrapy.recipe import Recipe

from . import stand_in

PROJECT = Path(__file__).parent / "project"
COMMAND = [sys.executable, "-W", "ignore", "-m", "trawl_scrapy.cli"]


class Site(http.server.BaseHTTPRequestHandler):
    """A site that answers with the status in the path. `/slow` waits, `/recovers` is busy at first, and `/form`
    logs the sender in."""

    protocol_version = "HTTP/1.1"
    goes_on, was_asked, asked, agents, busy = threading.Event(), threading.Semaphore(0), [], [], []

    def do_GET(self):
        # A client that takes this site for a proxy requests absolute URLs.
        self.path = urllib.parse.urlsplit(self.path).path
        self.agents.append(self.headers.get("user-agent"))
        body = b"ok"
        headers, status = {}, {"/missing": 404, "/broken": 503}.get(self.path, 200)
        if self.path == "/recovers" and len(self.busy) < 1:
            self.busy.append(self.path)
            status = 503
        if self.path == "/gzipped":
            headers["content-encoding"], headers["content-type"] = "gzip", "text/html; charset=latin-1"
            body = gzip.compress("<p>ä</p>".encode("latin-1"))
        if self.path == "/login":
            headers["set-cookie"] = "session=7; Path=/"
        if self.path.startswith("/to/"):
            status, headers["location"] = 302, self.path.removeprefix("/to")
        if self.path == "/hangs":
            # Longer than anyone waits.
            threading.Event().wait(5)
        if self.path.startswith("/slow"):
            self.asked.append(self.path)
            self.was_asked.release()
            self.goes_on.wait(30)
        self.send_response(status)
        for name, value in {"content-type": "text/html", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def do_POST(self):
        form = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(302)
        for name, value in {"location": "/third", "set-cookie": f"user={form.decode()[5:]}; Path=/", "content-length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        pass


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
        cls.server.daemon_threads = True
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.site = f"http://127.0.0.1:{cls.server.server_port}"
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = {"PATH": os.environ["PATH"], "HOME": cls.folder.name, "TRAWL_TMP": cls.folder.name}

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    def recipe(self, case, **settings):
        return json.dumps({"spider": "odd", "args": {"site": self.site, "case": case}, "settings": settings})


class Serve(Case):
    def crawl(self, *recipes):
        frontier, deaths = asyncio.run(stand_in.crawl(recipes, [*COMMAND, "serve"], PROJECT, self.environment, processes=1))
        self.assertEqual(deaths, 0)
        self.items = [json.dumps(item) for item in frontier.items]
        self.results = Counter(frontier.results.values())
        self.log = "\n".join(entry["message"] for entry in frontier.logs)
        return frontier

    def has(self, *items):
        self.assertEqual(Counter(self.items), Counter(json.dumps(item) for item in items))

    def tasks(self, case, site=None):
        """A recipe whose requests all become tasks."""
        args = {"site": site or self.site, "case": case}
        handlers = {"http": "odd.handlers.Own"}
        return json.dumps({"spider": "odd", "args": args, "settings": {"DOWNLOAD_HANDLERS": handlers}})

    def page(self, path, cookie="", status=200):
        return {"url": path, "status": status, "cookie": cookie}

    def test_items_of_the_start_and_of_a_page_are_answered(self):
        self.crawl(self.recipe("item"))
        self.has({"of": "start"}, self.page("/item"))
        self.assertEqual(self.results, {0: 2})

    def test_a_callback_that_fails_at_once_is_tried_again_and_one_that_fails_halfway_is_done_as_far_as_it_came(self):
        self.crawl(self.recipe("callback_fails_at_once"))
        self.assertEqual((self.items, self.results), ([], {0: 1, 1: 1}))
        self.assertEqual(self.log.count("ValueError: a callback fails at once"), 4)
        self.crawl(self.recipe("callback_fails_halfway"))
        self.has({"of": "before"}, self.page("/other"))
        self.assertEqual(self.results, {0: 3})
        self.assertEqual(self.log.count("ValueError: a callback fails halfway"), 1)

    def test_a_start_that_fails_is_tried_again_and_so_is_a_page_whose_items_all_fail(self):
        self.crawl(self.recipe("start_fails"))
        self.assertEqual(self.results, {1: 1})
        self.assertIn("ValueError: the start fails", self.log)
        self.crawl(self.recipe("pipeline_fails"))
        self.assertEqual(self.results, {0: 1, 1: 1})
        self.assertIn("ValueError: a pipeline fails", self.log)

    def test_a_long_start_is_several_tasks(self):
        recipe, submitted, items = self.recipe("start_of_many"), [], []
        process = subprocess.Popen([*COMMAND, "serve"], cwd=PROJECT, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with process:
            for number in range(2):
                task = {"id": str(number), "crawl": "a", "recipe": recipe}
                process.stdin.write(json.dumps({"id": number, "task": task}).encode() + b"\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                submitted += [task["unique"] for task in answer["tasks"]]
                items += answer["items"]
                recipe = answer["tasks"][-1]["recipe"]
        # 10,004 requests and items, and a task for the rest of the start.
        self.assertEqual((len(submitted), len(set(submitted))), (10_002, 10_002))
        self.assertEqual(items, [{"number": 0}, {"number": 4_000}, {"number": 8_000}])

    def test_a_spider_that_asks_to_be_closed_ends_its_task_alone(self):
        self.crawl(self.recipe("closes"))
        self.has({"of": "before"})
        self.assertEqual(self.results, {0: 2})
        self.assertIn("(enough)", self.log)

    def test_a_request_that_cannot_be_a_task_is_made_at_once(self):
        for case in ("by_lambda", "by_huge_meta"):
            self.crawl(self.recipe(case))
            self.has(self.page("/other"))
            self.assertEqual(self.results, {0: 2})

    def test_what_is_no_unicode_or_no_json_number_is_replaced(self):
        self.crawl(self.recipe("odd_values"))
        # The form of the feeds of this version of Scrapy.
        time = json.loads(ScrapyJSONEncoder().encode(datetime.datetime(2026, 1, 2, 3, 4, 5)))
        self.has({"text": "a?b", "number": None, "time": time}, self.page("/other"))

    def test_a_callback_may_await_downloads_and_call_the_engine(self):
        self.crawl(self.recipe("by_await"))
        self.has({"awaited": "/other"}, self.page("/third"))

    def test_a_form_is_posted_and_its_cookies_go_along_where_it_redirects(self):
        frontier = self.crawl(self.recipe("log_in"))
        self.has(self.page("/third", "user=%C3%A4"))
        self.assertEqual([request["method"] for request in frontier.requests], ["GET", "POST", "GET"])
        self.assertEqual(frontier.requests[2]["cookies"], [["user", "%C3%A4"]])

    def test_a_page_is_decoded_as_scrapy_does_and_unpacked_once(self):
        self.crawl(self.recipe("gzipped"))
        self.has({"text": "ä", "encoding": "cp1252", "coded": False})

    def test_a_status_reaches_who_asks_for_it(self):
        Site.busy.clear()
        self.crawl(self.recipe("recovers"))
        self.has({"status": 200, "retried": 1})
        self.crawl(self.recipe("handles_missing"))
        self.has(self.page("/missing", status=404))

    def test_keyword_arguments_and_the_priority_go_along(self):
        self.crawl(self.recipe("has_kwargs"))
        self.has({"year": 2026, "priority": 3})

    def test_pages_are_downloaded_by_trawl_unless_the_project_downloads_them_itself(self):
        Site.agents.clear()
        frontier = self.crawl(self.recipe("twice"))
        self.assertEqual((set(Site.agents), len(frontier.recipes), len(frontier.requests)), ({"trawl"}, 1, 4))
        self.assertIn("trawl downloads what it can", self.log)
        Site.agents.clear()
        frontier = self.crawl(self.tasks("twice"))
        self.assertNotIn("trawl", Site.agents)
        self.assertEqual((len(Site.agents), len(frontier.recipes), len(frontier.requests)), (4, 5, 0))
        self.assertIn("each request is a task, which Scrapy downloads itself: the project has a download handler", self.log)

    def test_a_request_is_made_once_but_with_dont_filter_as_often_as_it_is_wanted(self):
        for recipe in (self.recipe("twice"), self.tasks("twice")):
            self.crawl(recipe)
            self.has(self.page("/other"), self.page("/third"), self.page("/third"), {"same": 1}, {"same": 1})

    def test_a_session_goes_along_with_what_follows_from_it(self):
        for recipe in (self.recipe("session"), self.tasks("session")):
            self.crawl(recipe)
            self.has(self.page("/other", "session=7"), self.page("/third", "own=1"))

    def test_what_follows_is_of_the_same_run_whatever_crawl_it_is_sent_again_in(self):
        frontier = self.crawl(self.recipe("twice"))
        runs = {request["data"]["run"] for request in frontier.requests}
        self.assertEqual(len(runs), 1)
        job = Job("a", "another", Recipe.of_object({"spider": "odd", "run": frontier.requests[0]["data"]["run"]}))
        self.assertEqual({job.run}, runs)

    def test_requests_go_through_the_workers_proxy_which_is_no_part_of_them(self):
        environment = {**self.environment, "TRAWL_PROXY": self.site}
        recipe = self.tasks("redirects", "http://shop.example")
        frontier, _ = asyncio.run(stand_in.crawl([recipe], [*COMMAND, "serve"], PROJECT, environment, processes=1))
        self.assertEqual(frontier.items, [self.page("/other")])
        self.assertEqual([task for task in frontier.recipes if "proxy" in task.lower()], [])

    def test_a_redirect_is_a_request_of_its_own(self):
        for recipe in (self.recipe("redirects"), self.tasks("redirects")):
            frontier = self.crawl(recipe)
            self.has(self.page("/other"))
            self.assertEqual(len(frontier.known), 3)

    def test_an_errback_has_what_has_failed(self):
        frontier = self.crawl(self.recipe("errback_of"))
        self.has({"missing": "/missing"}, self.page("/other"))
        self.assertEqual((self.results, len(frontier.recipes)), ({0: 4}, 1), "what has one is a request of the frontier")

    def test_an_errback_of_any_kind_has_the_exception_that_scrapy_itself_would_raise(self):
        frontier = self.crawl(self.recipe("fails_in_all_ways"))
        kinds = ["ConnectionRefused"] * 3 + ["DNSLookup", "Timeout", "IgnoreRequest"]
        self.has(*({"number": number, "kind": kind, "retried": None} for number, kind in enumerate(kinds)), self.page("/other"))
        self.assertEqual((self.results, len(frontier.recipes)), ({0: 9}, 1))

    def test_a_request_that_fails_is_tried_as_often_as_scrapy_says_and_each_try_is_a_request(self):
        frontier = self.crawl(self.recipe("tried_often", RETRY_TIMES=20))
        self.has({"number": 0, "kind": "ConnectionRefused", "retried": 20}, self.page("/other"))
        self.assertEqual((self.results, len(frontier.requests)), ({0: 24}, 23))

    def test_an_errback_that_raises_fails_its_request_and_one_that_cannot_travel_is_called_at_once(self):
        self.crawl(self.recipe("errback_raises"))
        self.assertEqual((self.items, self.results), ([], {0: 3, 1: 1}))
        self.assertIn("ValueError: an errback raises", self.log)
        self.crawl(self.recipe("errback_by_lambda"))
        self.has({"kind": "lambda"})

    def with_own(self, case, **settings):
        return self.recipe(case, DOWNLOADER_MIDDLEWARES={"odd.middlewares.Own": 543}, **settings)

    def test_middlewares_of_the_project_look_at_a_request_once_before_trawl_downloads_it(self):
        Site.agents.clear()
        frontier = self.crawl(self.with_own("middlewares"))
        refused = "ConnectionRefusedError" if "CannotResolveHostError" not in dir(scrapy.exceptions) else "DownloadConnectionRefusedError"
        self.has(
            {"path": "/mw/response", "seen": 1, "answered": 1, "text": "of a middleware"},
            # Once for each of the two requests.
            {"path": "/other", "seen": 2, "answered": 1, "text": "ok"},
            {"path": "/mw/object", "seen": 1, "answered": 1, "text": "ok"},
            {"path": "/mw/changed", "seen": 1, "answered": 1, "text": "ok"},
            {"path": "http://127.0.0.1:1/", "seen": 1, "answered": 1, "text": refused},
            {"ignored": "not this one"},
        )
        sent = [dict(request["headers"]).get("X-Seen") for request in frontier.requests]
        self.assertEqual(sorted(sent), ["1", "1", "1", "2"])
        # The request that raises is a task, and fails as such; the one with an object is made by Scrapy at once.
        self.assertEqual((self.results, len(frontier.recipes)), ({0: 5, 1: 1}, 2))
        self.assertEqual(Counter(agent == "trawl" for agent in Site.agents), {True: 3, False: 1})
        self.assertIn("ValueError: a middleware raises", self.log)

    def test_middlewares_look_at_a_redirect_as_at_a_request_of_its_own(self):
        self.crawl(self.with_own("redirects_once_more"))
        self.has({"path": "/other", "seen": 2, "answered": 1, "text": "ok"})

    def test_a_page_all_of_whose_requests_a_middleware_ignores_is_done(self):
        self.crawl(self.with_own("ignores_all"))
        self.assertEqual((self.items, self.results), ([], {0: 2}))

    def test_what_middlewares_have_prepared_and_trawl_does_not_download_they_look_at_no_more(self):
        frontier = self.crawl(self.with_own("redirects_once_more", DEFAULT_REQUEST_HEADERS={"Range": "bytes=0-"}))
        self.has({"path": "/other", "seen": 2, "answered": 1, "text": "ok"})
        self.assertEqual((len(frontier.recipes), len(frontier.requests)), (4, 0))

    def test_what_no_callback_sees_is_skipped_or_failed(self):
        self.crawl(self.recipe("missing"))
        self.assertEqual(self.results, {0: 1, 2: 1})
        self.assertIn("404 Not Found", self.log)
        self.crawl(self.recipe("broken"))
        self.assertEqual(self.results, {0: 2, 1: 1})
        self.assertIn("503 Service Unavailable", self.log)
        self.crawl(self.tasks("refused"))
        self.assertEqual(self.results, {0: 2, 1: 1})
        self.crawl(self.recipe("refused"))
        self.assertEqual(self.results, {0: 2, 1: 1})
        self.assertIn("refused", self.log)

    def test_what_is_no_recipe_or_no_spider_fails_with_what_to_change(self):
        self.crawl("[]", '{"spider": "even"}')
        self.assertEqual(self.results, {1: 2})
        self.assertIn("the recipe is the name of a spider", self.log)
        self.assertIn("has no spider `even`; there are: odd", self.log)

    def test_more_runs_than_may_be_open_are_all_worked_on(self):
        self.crawl(*(self.recipe("item", DEPTH_LIMIT=limit) for limit in range(1, 13)))
        self.assertEqual(len(self.items), 24)

    def test_standard_input_that_ends_and_sigterm_end_the_process_when_it_has_answered(self):
        for end in ("eof", "sigterm"):
            process = subprocess.Popen(
                [*COMMAND, "serve"], cwd=PROJECT, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            task = {"id": "a", "crawl": "a", "recipe": self.recipe("item")}
            process.stdin.write(json.dumps({"id": 1, "task": task}).encode() + b"\n")
            process.stdin.flush()
            if end == "eof":
                process.stdin.close()
            answer = json.loads(process.stdout.readline())
            self.assertEqual((answer["id"], answer["result"], len(answer["urls"])), (1, 0, 1))
            if end == "sigterm":
                process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(10), 0)
            process.stdout.close()
            process.stdin.close()


class Run(Case):
    def run_task(self, recipe, task="a"):
        command = [*COMMAND, "run", json.dumps({"id": task, "crawl": "a", "recipe": recipe}), "{}"]
        done = subprocess.run(command, cwd=PROJECT, env=self.environment, capture_output=True, text=True, timeout=60)
        return self.read(done.stdout), done.returncode

    def read(self, output):
        answer = json.loads(output)
        self.items, self.log = [], answer["logs"]
        if "items_file" in answer:
            file = Path(answer["items_file"])
            self.assertEqual(file.parent, Path(self.folder.name))
            self.items = [json.loads(line) for line in file.read_text().splitlines()]
            file.unlink()
        return answer["result"]

    def test_a_run_answers_with_its_items_its_log_and_its_result(self):
        self.assertEqual(self.run_task(self.recipe("twice")), (0, 0))
        self.assertEqual(len(self.items), 5)
        self.assertIn("the spider was closed: finished", self.log[-1]["message"])
        self.assertEqual([*Path(self.folder.name).glob(".cache/trawl-scrapy/*")], [], "it leaves nothing behind")

    def test_a_run_may_have_more_items_than_an_answer_takes(self):
        self.assertEqual(self.run_task(self.recipe("floods")), (0, 0))
        self.assertEqual([item["number"] for item in self.items], [*range(200)])
        self.assertEqual([*Path(self.folder.name).glob(".cache/trawl-scrapy/*")], [], "it leaves nothing behind")

    def test_a_task_that_is_too_long_for_an_argument_is_on_standard_input(self):
        recipe = json.dumps({"spider": "odd", "args": {"site": self.site, "case": "item", "long": "x" * 200_000}})
        task = json.dumps({"id": "long", "crawl": "a", "recipe": recipe})
        done = subprocess.run([*COMMAND, "run", "-", "{}"], cwd=PROJECT, env=self.environment, input=task, capture_output=True, text=True)
        self.assertEqual(self.read(done.stdout), 0)

    def test_what_a_spider_logs_has_its_level(self):
        self.run_task(self.recipe("callback_fails_at_once"))
        self.assertEqual([entry["level"] for entry in self.log if "ValueError: a callback fails" in entry["message"]], [3])

    def test_a_spider_that_closes_itself_is_done_and_a_start_that_fails_is_not(self):
        self.assertEqual(self.run_task(self.recipe("closes")), (0, 0))
        self.assertIn("the spider was closed: enough", self.log[-1]["message"])
        self.assertEqual(self.run_task(self.recipe("start_fails")), (1, 1))

    def test_a_project_or_a_spider_that_is_not_there_is_named(self):
        self.assertEqual(self.run_task("even"), (1, 1))
        self.assertIn("there are: odd", self.log[-1]["message"])
        self.assertEqual([*Path(self.folder.name).glob(".cache/trawl-scrapy/*")], [], "it leaves nothing behind")
        done = subprocess.run([*COMMAND, "run", "--project", "/nowhere", '{"id": "a", "recipe": "odd"}'], capture_output=True, text=True)
        self.assertIn("/nowhere is no folder", json.loads(done.stdout)["logs"][0]["message"])

    def test_a_run_that_is_stopped_goes_on_and_one_that_is_killed_begins_anew(self):
        self.ends("slow_pages", signal.SIGTERM, ["/slow/2", "/slow/3"])
        self.ends("slow_pages", signal.SIGKILL, ["/slow/1", "/slow/2", "/slow/3"])

    def test_a_run_that_cannot_be_kept_whole_begins_anew(self):
        self.ends("slow_lambdas", signal.SIGTERM, ["/slow/1", "/slow/2", "/slow/3"])

    def ends(self, case, end, asked_again):
        """Interrupts a run that waits for its first page, and repeats it."""
        Site.goes_on.clear()
        while Site.was_asked.acquire(blocking=False):
            pass
        recipe, task = self.recipe(case, CONCURRENT_REQUESTS=1), f"{case} {end}"
        command = [*COMMAND, "run", json.dumps({"id": task, "crawl": "a", "recipe": recipe})]
        process = subprocess.Popen(command, cwd=PROJECT, env=self.environment, stdout=subprocess.PIPE, text=True)
        Site.was_asked.acquire()
        process.send_signal(end)
        if end == signal.SIGKILL:
            process.communicate()
            Site.goes_on.set()
        else:
            # It waits for the page that it has requested.
            Site.goes_on.set()
            self.assertEqual(self.read(process.communicate(timeout=30)[0]), 1)
        Site.asked.clear()
        self.assertEqual(self.run_task(recipe, task), (0, 0))
        self.assertEqual([item["url"] for item in self.items], ["/slow/1", "/slow/2", "/slow/3"])
        self.assertEqual(Site.asked, asked_again)


if __name__ == "__main__":
    unittest.main()
