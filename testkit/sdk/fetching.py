"""A program for check_fetch.py: what `fetch` of trawl_handler promises, by a host at the URL in its task."""

from trawl_handler import NotFetched, fetch, run, task_handler


def not_fetched(url):
    try:
        answer = fetch(url)
    except NotFetched as why:
        return why
    raise AssertionError(f"{url} was fetched: {answer}")


@task_handler
def scenes(task):
    origin = task.recipe
    sent = fetch(f"{origin}/echo?q=grün", body='{"ids": [7]}', headers={"Content-Type": "application/json"})
    echo = sent.json()
    assert (sent.status, sent.header("Content-Type")) == (200, "application/json"), sent
    assert (echo["method"], echo["path"], echo["body"]) == ("POST", "/echo?q=gr%C3%BCn", '{"ids": [7]}'), echo
    assert echo["type"] == "application/json" and echo["agent"].startswith("trawl/"), echo
    assert fetch(f"{origin}/echo", method="PUT", body=b"bytes").json()["body"] == "bytes"
    assert fetch(f"{origin}/missing").status == 404
    moved = fetch(f"{origin}/moved")
    assert (moved.status, moved.header("location")) == (302, "/echo"), moved
    assert fetch(f"{origin}/latin").text == "grün"
    forbidden = not_fetched(f"{origin}/forbidden")
    assert (forbidden.status, forbidden.retry_after) == (403, None) and "robots.txt forbids it" in str(forbidden), forbidden
    assert not_fetched("http://127.0.0.1:1/").status == 502
    for wrong in ("/echo", "ftp://a.example/", "https:"):
        try:
            fetch(wrong)
            raise AssertionError(f"{wrong} was fetched")
        except ValueError as error:
            assert "is no whole URL" in str(error), error
    assert fetch(f"{origin}/busy").status == 429
    later = not_fetched(f"{origin}/echo")
    assert later.status == 503 and 560 <= later.retry_after <= 600, later
    assert f"try again in {later.retry_after} s, or yield the URL" in str(later), later
    yield {"all": "well"}


run()
