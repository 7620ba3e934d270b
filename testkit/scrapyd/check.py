"""The clients python-scrapyd-api, all of it, and scrapyd-client, both unchanged, against a fleet: workers that have no spider's file, and
`trawl api`. Run by scripts/scrapyd, which starts the servers."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import requests
from scrapyd_api import ScrapydAPI
from scrapyd_api.exceptions import ScrapydResponseError

sys.path.insert(0, str(Path(__file__).parent.parent))
from checks import TOKEN, Fleet, Site, until

SPIDER = """
[start]
urls = ["{origin}/{version}/{{arg.page}}"]
[arguments]
page = {{ help = "which page" }}
"""


def items(fleet):
    told = subprocess.run(
        [os.environ["TRAWL"], "items", "-q"], env=fleet.environment, cwd=fleet.folder.name, capture_output=True, text=True
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


def bundle(origin, version, names):
    """A tar of spider files, as a client would send an egg."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in names:
            text = SPIDER.format(origin=origin, version=version).encode()
            member = tarfile.TarInfo(f"project/spiders/{name}.toml")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def refused(call, said):
    try:
        call()
    except ScrapydResponseError as error:
        assert said in str(error), error
    else:
        raise AssertionError(f"this was not refused, with `{said}`")


def versions_are_deployed_listed_and_removed(scrapyd, site, fleet):
    assert scrapyd.list_projects() == []
    assert scrapyd.add_version("shop", "r9", bundle(site.origin, "r9", ["books", "hats"])) == 2
    assert scrapyd.add_version("shop", "r10", bundle(site.origin, "r10", ["books"])) == 1
    one = Path(fleet.folder.name) / "toys.toml"
    one.write_text(SPIDER.format(origin=site.origin, version="one"))
    with open(one, "rb") as file:
        assert scrapyd.add_version("toys", "1.0", file) == 1
    assert scrapyd.list_projects() == ["shop", "toys"]
    assert scrapyd.list_versions("shop") == ["r9", "r10"]
    assert (scrapyd.list_spiders("shop"), scrapyd.list_spiders("toys")) == (["books"], ["toys"])
    assert scrapyd.delete_version("shop", "r9") and scrapyd.list_versions("shop") == ["r10"]
    assert scrapyd.delete_project("toys") and scrapyd.list_projects() == ["shop"]
    refused(lambda: scrapyd.list_spiders("toys"), "project 'toys' not found")
    refused(lambda: scrapyd.delete_version("shop", "r9"), "version 'r9'")
    refused(lambda: scrapyd.add_version("shop", "r11", b"PK\x03\x04 an egg"), "a Python egg")
    refused(lambda: scrapyd.add_version("shop", "r11", b"max_pages = 'many'"), "NAME.toml")
    refused(lambda: scrapyd.add_version("shop", "r11", bundle("", "r11", ["books"])[:40]), "cannot be unpacked")


def jobs_run_with_their_arguments_and_are_listed(scrapyd, site, fleet):
    job = scrapyd.schedule("shop", "books", page="7", settings={"CLOSESPIDER_PAGECOUNT": 5, "DOWNLOAD_DELAY": 2})
    until("it is over", lambda: scrapyd.job_status("shop", job) == "finished")
    assert site.asked["/r10/7"] == 1
    finished = scrapyd.list_jobs("shop")["finished"]
    assert [(one["id"], one["spider"], one["outcome"]) for one in finished] == [(job, "books", "finished")]
    assert finished[0]["ignored_settings"] == ["DOWNLOAD_DELAY"], finished
    assert finished[0]["start_time"] <= finished[0]["end_time"]
    until("its item is there", lambda: [item["crawl"] for item in items(fleet)] == [job])
    refused(lambda: scrapyd.schedule("shop", "books"), "arguments.page: has no default")
    refused(lambda: scrapyd.schedule("shop", "books", page="1", color="red"), "there is no argument `color`")
    refused(lambda: scrapyd.schedule("shop", "boks", page="1"), "spider 'boks' not found")
    refused(lambda: scrapyd.schedule("shp", "books", page="1"), "project 'shp' not found")
    refused(lambda: scrapyd.schedule("shop", "books", page="1", _version="r9"), "version 'r9'")


def the_highest_priority_is_run_first_and_jobs_are_cancelled(scrapyd, site, fleet):
    running = scrapyd.schedule("shop", "books", page="slow")
    until("it runs", lambda: scrapyd.job_status("shop", running) == "running")
    later = [scrapyd.schedule("shop", "books", page=f"p{priority}", priority=priority) for priority in (0.5, -1, 10)]
    dropped = scrapyd.schedule("shop", "books", page="dropped")
    pending = [job["id"] for job in scrapyd.list_jobs("shop")["pending"]]
    assert pending == [later[2], later[0], dropped, later[1]], pending
    assert scrapyd.cancel("shop", dropped) == "pending"
    assert scrapyd.cancel("shop", running, signal="TERM") == "running"
    site.goes_on.set()
    until("all are over", lambda: not any(scrapyd.list_jobs("shop")[state] for state in ("pending", "running")))
    assert scrapyd.cancel("shop", running) is None and scrapyd.cancel("shop", "none") is None
    assert site.asked["/r10/dropped"] == 0
    asked = [path for path in site.asked if path.startswith("/r10/p")]
    assert asked == ["/r10/p10", "/r10/p0.5", "/r10/p-1"], asked
    outcomes = Counter(job["outcome"] for job in scrapyd.list_jobs("shop")["finished"])
    assert outcomes == {"finished": 4, "cancelled": 2}, outcomes


def what_the_client_has_no_call_for_is_answered_too(scrapyd, site, fleet):
    anna = ("anna", TOKEN)
    daemon = requests.get(f"{fleet.url}/daemonstatus.json", auth=anna).json()
    assert (daemon["status"], daemon["pending"], daemon["running"], daemon["finished"]) == ("ok", 0, 0, 6), daemon
    given = requests.post(f"{fleet.url}/schedule.json", {"project": "shop", "spider": "books", "page": "8", "jobid": "Mine"}, auth=anna)
    assert given.json()["jobid"] == "mine", given.text
    state = lambda: requests.get(f"{fleet.url}/status.json", {"job": "Mine"}, auth=anna).json()["currstate"]
    until("it is over", lambda: state() == "finished")
    jobs = requests.get(f"{fleet.url}/jobs", auth=anna)
    assert "<h1>Jobs</h1>" in jobs.text and "<td>mine</td><td></td><td>20" in jobs.text, jobs.text
    assert requests.get(fleet.url, auth=anna).status_code == 200
    # ScrapydWeb sends a bundle as a field of a plain form.
    field = {"project": "hats", "version": "r1", "egg": gzip.decompress(bundle(site.origin, "r1", ["hats"]))}
    assert requests.post(f"{fleet.url}/addversion.json", field, auth=anna).json()["spiders"] == 1
    for wrong in (None, ("anna", "guessed"), ("otto", TOKEN)):
        assert requests.get(f"{fleet.url}/daemonstatus.json", auth=wrong).status_code == 401


def scrapyd_client_deploys_lists_and_schedules(scrapyd, site, fleet):
    project = Path(fleet.folder.name) / "caps"
    project.mkdir()
    # The URL ends in a slash, as in the file that `scrapy startproject` writes.
    deploy = f"url = {fleet.url}/\nproject = caps\nusername = anna\npassword = {TOKEN}\n"
    (project / "scrapy.cfg").write_text(f"[settings]\ndefault = caps.settings\n[deploy]\n{deploy}")
    (project / "caps.tar").write_bytes(bundle(site.origin, "caps", ["caps"]))

    def run(command, *words):
        path = Path(sys.executable).parent / command
        done = subprocess.run([path, *words], cwd=project, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (words, done)
        return done.stdout

    assert '"spiders":1' in run("scrapyd-deploy", "--version", "r1", "--egg", "caps.tar")
    assert "docs/scrapy.md" in run("scrapyd-deploy", "--version", "r2"), "it packs an egg"
    assert "caps" in run("scrapyd-client", "projects").split()
    assert run("scrapyd-client", "spiders", "-p", "caps").split() == ["caps:", "caps"]
    job = run("scrapyd-client", "schedule", "-p", "caps", "caps", "--arg", "page=9").split("=> ")[1].strip()
    until("it is over", lambda: scrapyd.job_status("caps", job) == "finished")
    assert site.asked["/caps/9"] == 1


def main():
    site, fleet = Site(), Fleet()
    scrapyd = ScrapydAPI(fleet.url, auth=("anna", TOKEN))
    try:
        for scene in (
            versions_are_deployed_listed_and_removed,
            jobs_run_with_their_arguments_and_are_listed,
            the_highest_priority_is_run_first_and_jobs_are_cancelled,
            what_the_client_has_no_call_for_is_answered_too,
            scrapyd_client_deploys_lists_and_schedules,
        ):
            scene(scrapyd, site, fleet)
            print(scene.__name__.replace("_", " "))
    finally:
        site.goes_on.set()
        fleet.end()


main()
