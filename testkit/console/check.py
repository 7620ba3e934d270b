"""The console in Chromium, over a fleet. Run by scripts/console-browser, which starts the servers."""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from axe_core_python.selenium import Axe
from checks import Site, until
from fleet import OPERATOR, Fleet, browser
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


PAGES = """/ /crawls /crawls/new /jobs /spiders /spiders/deploy /spiders/default/tree /projects/default /schedules /dead-letters /hosts
/workers /logs /tasks /tasks/new /spiders/default/payments""".split()

# A program that does tasks: one fails with a trace, one takes longer than anybody waits.
PROGRAM = """import json, sys, time
recipe = json.loads(sys.argv[1])["recipe"]
if recipe == "slow":
    time.sleep(600)
if "broken" in recipe:
    raise ValueError("no such payment: <img src=x onerror=alert(3)> \\u202e")
print(json.dumps({"result": 0, "items": [{"recipe": recipe}]}))
"""
FILES = {
    "spiders/payments/spider.toml": '[handler]\nrun = ["/usr/bin/env", "python3", "run.py"]\nmemory = "200MB"\nconcurrency = 2\n',
    "spiders/payments/run.py": PROGRAM,
}
HOSTILE = "broken <script>alert(1)</script><img src=x onerror=alert(2)> \u202e"


def text(driver, selector="main"):
    """What is shown there, read at once: what is live may be replaced between two calls."""
    return driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)


def press(driver, name):
    """Presses the button, or follows the link, of this name."""
    found = driver.find_elements(By.XPATH, f"//main//*[self::a or self::button][normalize-space()='{name}']")
    assert found, f"no `{name}` on {driver.current_url}: {text(driver)}"
    found[0].click()


def log_in(driver, fleet):
    driver.get(fleet.url)
    driver.find_element(By.NAME, "token").send_keys(OPERATOR, Keys.ENTER)
    until("the overview is shown", lambda: "Latest crawls" in text(driver))


def a_wrong_token_is_refused_and_a_right_one_begins_a_session(driver, fleet, site):
    driver.get(f"{fleet.url}/hosts")
    assert "Log in" in text(driver, "h1")
    serious(driver, "log-in")
    driver.find_element(By.NAME, "token").send_keys("wrong", Keys.ENTER)
    until("it is refused", lambda: "nobody has this token" in text(driver))
    driver.find_element(By.NAME, "token").send_keys(OPERATOR, Keys.ENTER)
    until("one is where one wanted to go", lambda: driver.current_url == f"{fleet.url}/hosts")
    assert driver.execute_script("return document.cookie") == "", "a script sees the session"


def a_crawl_is_started_watched_and_cancelled(driver, fleet, site):
    driver.get(f"{fleet.url}/crawls/new")
    pages = site.urls(["/1", "/2", "/broken", "/slow"])
    driver.find_element(By.NAME, "urls").send_keys("\n".join(pages))
    press(driver, "Start the crawl")
    until("its page is shown", lambda: "/crawls/2" in driver.current_url)
    crawl = driver.current_url.rsplit("/", 1)[1]
    driver.execute_script("window.isTheSamePage = true")
    until("it has hosts", lambda: driver.find_elements(By.CSS_SELECTOR, "#hosts .scroll"))
    driver.execute_script("document.querySelector('#hosts .scroll').focus()")
    until("its progress is seen", lambda: "Done\n2" in text(driver))
    until("also in the table that was clicked into", lambda: text(driver, "#hosts tbody td:nth-child(3)") == "2")
    assert driver.execute_script("return window.isTheSamePage"), "the page was loaded again"
    serious(driver, "crawl")
    press(driver, "Cancel…")
    until("it is asked about", lambda: f"Cancel crawl {crawl}" in text(driver))
    serious(driver, "question")
    press(driver, "Cancel the crawl")
    until("it is cancelled", lambda: "cancelled" in text(driver, ".facts"))
    site.goes_on.set()
    driver.get(f"{fleet.url}/crawls/{crawl}/items")
    # In the order in which they came; the first is open.
    assert '"url": "' in text(driver) and all(page in text(driver) for page in pages[:2]), text(driver)
    serious(driver, "items")
    driver.get(f"{fleet.url}/crawls/{crawl}/url")
    driver.find_element(By.NAME, "url").send_keys(pages[2], Keys.ENTER)
    until("it is found", lambda: "It is a dead letter since" in text(driver))
    serious(driver, "URL")


def a_dead_letter_is_sent_again(driver, fleet, site):
    driver.get(f"{fleet.url}/crawls/new")
    driver.find_element(By.NAME, "urls").send_keys(site.origin + "/missing")
    press(driver, "Start the crawl")
    until("it has failed", lambda: "Failed\n1" in text(driver))
    driver.get(f"{fleet.url}/dead-letters")
    serious(driver, "dead letters")
    press(driver, site.origin + "/missing")
    until("it is shown", lambda: "404" in text(driver))
    serious(driver, "dead letter")
    press(driver, "Its log")
    until("its log is shown", lambda: "dead letter, final, attempts 1" in text(driver))
    serious(driver, "log")
    driver.back()
    until("it is shown", lambda: "Kind of failure" in text(driver))
    press(driver, "Replay…")
    until("it is asked about", lambda: "Replay 1 dead letter?" in text(driver))
    press(driver, "Replay it")
    until("it was sent", lambda: "1 dead letter was sent again." in text(driver))
    until("it is asked for again", lambda: site.asked["/missing"] == 2)


SPIDER = """schedule = "0 3 * * *"

[arguments]
page = { default = "b", help = "which page of the tree" }

[start]
urls = ["ORIGIN/tree/{arg.page}"]

[follow]
area = "p"

[fields]
title = "title::text"
greeting = "p::text"
"""


def write(driver, name, text):
    """Writes into a field, in place of what is in it."""
    field = driver.find_element(By.NAME, name)
    field.clear()
    field.send_keys(text)


def a_spider_is_written_deployed_tried_and_crawled_with_its_arguments(driver, fleet, site):
    spider = SPIDER.replace("ORIGIN", site.origin)
    driver.get(f"{fleet.url}/spiders")
    serious(driver, "no spiders")
    press(driver, "Deploy")
    write(driver, "spider", "tree")
    write(driver, "text", spider + 'price = "p:no-such"\n')
    press(driver, "Check")
    until("its mistake is shown", lambda: "Line 15, column 9" in text(driver))
    serious(driver, "mistakes")
    write(driver, "text", spider)
    press(driver, "Deploy")
    until("it is deployed", lambda: driver.current_url == f"{fleet.url}/projects/default")
    serious(driver, "project")
    press(driver, "tree")
    until("it is shown", lambda: "no mistakes" in text(driver))
    serious(driver, "spider")
    write(driver, "url", site.origin + "/tree/a")
    write(driver, "arg.page", "a")
    press(driver, "Try")
    until("the page is shown", lambda: '"greeting": "Hello' in text(driver, "#trial"))
    assert site.origin + "/tree/ab" in text(driver, "#trial"), text(driver)
    serious(driver, "trial")
    press(driver, "New crawl")
    write(driver, "arg.page", "a")
    serious(driver, "arguments")
    press(driver, "Start the crawl")
    until("it is begun", lambda: "/crawls/2" in driver.current_url)
    driver.execute_script("window.isTheSamePage = true")
    until("it is seen to finish", lambda: "finished" in text(driver, ".facts") and "Done\n7" in text(driver))
    assert driver.execute_script("return window.isTheSamePage"), "the page was loaded again"
    assert "page\na" in text(driver, "#job"), text(driver, "#job")


def tasks_are_submitted_watched_tried_again_and_cancelled(driver, fleet, site):
    driver.get(f"{fleet.url}/spiders/default/payments")
    assert "2 at once" in text(driver), text(driver)
    press(driver, "Submit tasks")
    until("its form is shown", lambda: "/tasks/new" in driver.current_url)
    lines = [json.dumps(recipe) for recipe in ("quick", "slow")] + [json.dumps({"recipe": HOSTILE, "priority": 7})]
    write(driver, "list", "\n".join([*lines, '{"recipes": 1}']))
    press(driver, "Submit")
    until("its mistake is shown", lambda: "Line 4: " in text(driver))
    serious(driver, "wrong lines")
    assert driver.find_element(By.NAME, "list").get_attribute("value").startswith(lines[0]), "what was written is there"
    write(driver, "list", "\n".join(lines))
    press(driver, "Submit")
    until("they are done but for one", lambda: "2 of 3 tasks have ended" in text(driver) and "Failed\n1" in text(driver))
    serious(driver, "crawl of tasks")
    press(driver, "Its tasks")
    until("that which runs is shown", lambda: "running" in text(driver, "#tasks"))
    driver.execute_script("window.isTheSamePage = true")
    serious(driver, "tasks")
    press(driver, "failed")
    until("that which failed is shown", lambda: "broken" in text(driver, "#tasks"))
    nothing_ran(driver)
    driver.find_element(By.CSS_SELECTOR, "#tasks th a").click()
    until("its page is shown", lambda: "What it says" in text(driver))
    driver.find_element(By.CSS_SELECTOR, "#log summary").send_keys(Keys.ENTER)
    until("its trace is unfolded", lambda: "line 6" in text(driver, "#log details[open] pre"))
    nothing_ran(driver)
    serious(driver, "task")
    failed_at = instant(driver, "#standing")
    press(driver, "Try again")
    until("it has failed again", lambda: "failed\n" in text(driver, "#standing") and instant(driver, "#standing") > failed_at)
    press(driver, "Read the dead letter")
    until("it is read", lambda: "Kind of failure" in text(driver) or "Reason" in text(driver))
    nothing_ran(driver)
    press(driver, "Where it stands in its crawl")
    until("one is back at the task", lambda: "What it says" in text(driver))
    driver.get(f"{fleet.url}/workers")
    until("what runs is shown", lambda: "What programs do" in text(driver))
    serious(driver, "workers with programs")
    driver.find_element(By.CSS_SELECTOR, "#running th a").click()
    until("its page is shown", lambda: "slow" in text(driver))
    serious(driver, "running task")
    no_wider_than_a_phone(driver, "task")
    press(driver, "Cancel…")
    until("it is asked about", lambda: "Cancel task:" in text(driver))
    press(driver, "Cancel the task")
    until("it is cancelled", lambda: "neither waits nor runs" in text(driver))


def a_list_of_urls_requests_and_tasks_is_one_crawl(driver, fleet, site):
    driver.get(f"{fleet.url}/crawls/new?spider=payments")
    entries = [site.origin + "/1", json.dumps({"url": site.origin + "/2", "headers": {"x-a": "b"}}), json.dumps({"recipe": "quick 2"})]
    write(driver, "list", "\n".join([*entries, "</textarea><script>alert(1)</script>"]))
    press(driver, "Start the crawl")
    until("its mistake is shown", lambda: "Line 4: " in text(driver))
    nothing_ran(driver)
    serious(driver, "wrong entries")
    write(driver, "list", "\n".join(entries))
    press(driver, "Start the crawl")
    until("it is seen to finish", lambda: "3 of 3 URLs and tasks" in text(driver) and "1 are tasks: 1 done" in text(driver))


def instant(driver, selector):
    """The first instant that is shown there; nothing if none is."""
    return driver.execute_script("return document.querySelector(arguments[0] + ' time')?.dateTime ?? ''", selector)


def nothing_ran(driver):
    """Nothing of what others wrote is a part of the page."""
    assert not driver.find_elements(By.CSS_SELECTOR, "main img, main script"), driver.page_source
    assert "\u202e" not in driver.page_source


def a_worker_is_drained_after_a_question(driver, fleet, site):
    driver.get(f"{fleet.url}/workers")
    press(driver, "Drain…")
    until("it is asked about", lambda: "No other worker lives" in text(driver))
    serious(driver, "drain")
    press(driver, "Back")
    until("nothing was done", lambda: driver.current_url == f"{fleet.url}/workers" and "draining" not in text(driver))


def a_schedule_is_held_let_go_on_and_run(driver, fleet, site):
    driver.get(f"{fleet.url}/schedules")
    assert "0 3 * * *" in text(driver), text(driver)
    serious(driver, "schedules")
    press(driver, "Pause")
    until("it is held", lambda: "paused" in text(driver))
    press(driver, "Resume")
    until("it goes on", lambda: "paused" not in text(driver))


def a_forged_form_does_nothing(driver, fleet, site):
    driver.get(f"{fleet.url}/hosts/block?host=a.example")
    driver.execute_script("document.querySelector('[name=csrf]').value = 'forged'")
    press(driver, "Block the host")
    until("it is refused", lambda: "not of a page of your session" in text(driver))
    # A page of another site sends a form: its origin is not that of the console.
    driver.get(site.origin + "/1")
    driver.execute_script(
        """const form = document.createElement("form");
        form.method = "post"; form.action = arguments[0] + "/hosts/block";
        form.innerHTML = "<input name=host value=a.example>";
        document.body.append(form); form.submit();""",
        fleet.url,
    )
    until("it is refused", lambda: "a page of another site" in text(driver))
    driver.get(f"{fleet.url}/hosts?host=a.example")
    if "Log in" in text(driver, "h1"):
        log_in(driver, fleet)
        driver.get(f"{fleet.url}/hosts?host=a.example")
    assert "Nothing is known of a.example" in text(driver), text(driver)


def every_page_can_be_used_by_keyboard_and_screen_reader(driver, fleet, site):
    driver.get_log("browser")  # what was refused on purpose
    for path in [*PAGES, "/crawls/none"]:
        driver.get(fleet.url + path)
        serious(driver, path)
        errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE" and " 404 " not in entry["message"]]
        assert not errors, (path, errors)
    driver.get(fleet.url)
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the content"


def no_page_is_wider_than_a_phone(driver, fleet, site):
    for path in PAGES:
        driver.get(fleet.url + path)
        no_wider_than_a_phone(driver, path)


def no_wider_than_a_phone(driver, page):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 390, (page, wide)


def without_a_token_it_does_not_start_where_others_reach_it(driver, fleet, site):
    said = fleet.refused("console", "--listen", "0.0.0.0:0", without=["TRAWL__API__OPERATORS__ANNA"])
    assert "api.operators" in said, said


def serious(driver, page):
    """Nothing that axe-core finds is serious."""
    found = Axe().run(driver)["violations"]
    found = [(one["id"], [node["target"] for node in one["nodes"]]) for one in found if one["impact"] in ("serious", "critical")]
    assert not found, (page, found)


def main():
    site = Site()
    fleet = Fleet({"TRAWL__FETCH__ALLOW_PRIVATE": "true", "TRAWL__POLITENESS__RATE": "unlimited", "TRAWL__RETRY__MAX": "0"}, FILES)
    checks = [
        a_wrong_token_is_refused_and_a_right_one_begins_a_session,
        a_crawl_is_started_watched_and_cancelled,
        a_dead_letter_is_sent_again,
        a_spider_is_written_deployed_tried_and_crawled_with_its_arguments,
        a_schedule_is_held_let_go_on_and_run,
        a_worker_is_drained_after_a_question,
        tasks_are_submitted_watched_tried_again_and_cancelled,
        a_list_of_urls_requests_and_tasks_is_one_crawl,
        every_page_can_be_used_by_keyboard_and_screen_reader,
        no_page_is_wider_than_a_phone,
        a_forged_form_does_nothing,
        without_a_token_it_does_not_start_where_others_reach_it,
    ]
    try:
        for is_dark in (False, True):
            with tempfile.TemporaryDirectory() as profile:
                driver = browser(profile, is_dark)
                try:
                    if is_dark:
                        log_in(driver, fleet)
                        checks = [every_page_can_be_used_by_keyboard_and_screen_reader]
                    for check in checks:
                        check(driver, fleet, site)
                        print(f"{check.__name__.replace('_', ' ')}{' (dark)' if is_dark else ''}")
                finally:
                    driver.quit()
    finally:
        site.goes_on.set()
        fleet.end()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--pictures"]:
            from pictures import take

            take()
        case ["--night"]:
            import night

            night.main()
        case _:
            main()
