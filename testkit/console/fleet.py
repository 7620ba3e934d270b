"""A fleet with a console, and Chromium to look at it."""

import os
import subprocess
import tempfile
import threading
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from checks import LIMIT

TRAWL = os.environ["TRAWL"]
OPERATOR = "an-operators-token-of-a-test-and-of-nothing-else"

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars --force-color-profile=srgb""".split()


def hash_of(token):
    """What the settings have in the token's place."""
    return subprocess.run([TRAWL, "console", "hash"], input=token, capture_output=True, text=True, check=True).stdout.strip()


class Fleet:
    """A worker and the console, in a folder of their own, which has `files`."""

    def __init__(self, settings, files=()):
        self.folder = tempfile.TemporaryDirectory()
        for name, text in dict(files).items():
            path = Path(self.folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "RABBITMQ_URL", "REDIS_URL") if name in os.environ}
        self.environment = inherited | {"TRAWL__API__OPERATORS__ANNA": hash_of(OPERATOR)} | settings
        self.running = [self.start("worker")]
        console = self.start("console", "--listen", "127.0.0.1:0", stderr=subprocess.PIPE)
        self.running.append(console)
        told = ""
        while "serving http://" not in told:
            told = console.stderr.readline()
            assert told, "trawl console has ended"
        self.url = told.split("serving ")[1].split("/,")[0]
        threading.Thread(target=lambda: [None for _ in console.stderr], daemon=True).start()

    def start(self, *words, stderr=None):
        return subprocess.Popen([TRAWL, *words], env=self.environment, cwd=self.folder.name, text=True, stderr=stderr)

    def refused(self, *words, without=()):
        """Runs a command without some settings, which must end as wrongly called, and returns what it said."""
        environment = {name: value for name, value in self.environment.items() if name not in without}
        told = subprocess.run([TRAWL, *words], env=environment, cwd=self.folder.name, capture_output=True, text=True, timeout=LIMIT)
        assert told.returncode == 2, told
        return told.stderr

    def run(self, *words, text=None):
        """Runs a command, and returns what it printed. URLs of it may fail."""
        told = subprocess.run([TRAWL, *words], env=self.environment, cwd=self.folder.name, input=text, capture_output=True, text=True)
        assert told.returncode in (0, 3), told.stderr
        return told.stdout.strip()

    def end(self):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(LIMIT)


def browser(profile, is_dark=False, width=1280, height=900):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    dark = ["--blink-settings=preferredColorScheme=0"] if is_dark else ["--blink-settings=preferredColorScheme=1"]
    for flag in [*FLAGS, *dark, f"--user-data-dir={profile}", f"--window-size={width},{height}"]:
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
