"""A program that lives: it sends each task to the site, and says what that answers; a page says itself what is to be said of it."""

import json
import sys
import threading
import urllib.request

speaking = threading.Lock()


def say(number, answer):
    with speaking:
        print(json.dumps({"id": number, **answer}), flush=True)


def do_task(number, task, secret):
    headers = {"User-Agent": secret["WHO"]}
    sent = urllib.request.Request(secret["SITE"], json.dumps(task).encode(), headers)
    with urllib.request.urlopen(sent) as answer:
        say(number, json.load(answer))


def read_page(number, page):
    answer = json.loads(page["text"])
    for item in answer["items"]:
        item["asked"] = page.get("data", {"n": 0})["n"]
    say(number, {"result": 0, **answer})


secret = json.loads(sys.stdin.readline())["secret"]
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "page":
        read_page(request["id"], request["page"])
    else:
        threading.Thread(target=do_task, args=(request["id"], request["task"], secret), daemon=True).start()
