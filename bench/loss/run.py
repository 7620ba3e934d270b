"""Runs every contestant under every fault, each in a process of its own, and writes what came of it."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import faults
import report
from contestants import CONTESTANTS

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results.json"


def main():
    options = parse()
    peers, kinds = options.peer or list(CONTESTANTS), options.fault or list(faults.FAULTS)
    root = pathlib.Path(tempfile.mkdtemp(prefix="trawl-loss-"))
    print(f"logs: {root}", file=sys.stderr)
    cells = [(peer, fault, number) for number in range(options.rounds) for fault in kinds for peer in peers
             if fault not in CONTESTANTS[peer].without]
    results, failed = load(), False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tried = {pool.submit(run, peer, fault, root, options): (peer, fault) for peer, fault, _ in cells}
        taken = set()
        for done in concurrent.futures.as_completed(tried):
            peer, fault = tried[done]
            verdict = done.result()
            failed |= verdict is None
            if verdict:
                # What was measured before gives way to the first new result, unless that is one more round.
                rounds = results.setdefault(peer, {})
                if (peer, fault) not in taken and not (options.add and fault in rounds):
                    rounds[fault] = []
                taken.add((peer, fault))
                rounds[fault].append(verdict)
                print(f"{peer}, {fault}: {verdict}", file=sys.stderr, flush=True)
            if verdict and not options.dry_run:
                RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
                report.write(results)
    sys.exit(failed)


def run(peer, fault, root, options):
    """The verdict on one cell; None if it could not be run."""
    command = [sys.executable, HERE / "cell.py", peer, fault, root, options.installed, options.trawl]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    if answer.returncode:
        print(f"{peer}, {fault}: {answer.stderr.strip()}", file=sys.stderr, flush=True)
        return None
    return json.loads(answer.stdout)


def load():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def parse():
    options = argparse.ArgumentParser()
    options.add_argument("--peer", action="append", choices=CONTESTANTS)
    options.add_argument("--fault", action="append", choices=faults.FAULTS)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--jobs", type=int, default=6)
    options.add_argument("--add", action="store_true", help="keep earlier results as further rounds")
    options.add_argument("--dry-run", action="store_true")
    options.add_argument("--installed", required=True)
    options.add_argument("--trawl", required=True)
    return options.parse_args()


if __name__ == "__main__":
    main()
