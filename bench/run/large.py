"""Large pages over HTTPS: how many trawl reads in a second of its own CPU, with few fields and with many."""

import gzip
import os
import statistics
import subprocess

from compare import rounds
from contestants import crawl
from stage import add_port, parser, stage, write_costs
from web import ROOT, Site

FEW = """[fields]
title = { page = "title" }
links = { page = "links" }
"""

# Those of extract/tests/speed.rs.
MANY = """name = ".main-heading .fqn ::text"
version = ".version::text"
location = ".sidebar .location ::text"
about = "#main-content > .docblock p::text"
declaration = ".item-decl pre ::text"
method = ".method h4.code-header ::text"
impl = ".impl h3.code-header a::attr(href)"
anchor = "#implementations a.anchor::attr(href)"
source = "a.srclink::attr(href)"
entry = ".sidebar-elems li a::text"
"""


class LargeSite(Site):
    """Packed pages of 241 KB over HTTPS, 20 on a connection. All hosts have the same."""

    scheme, listen, sizes = "https", "ssl", (174_000, 600_000)
    settings = """
      ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/cert.key.pem;
      keepalive_requests 20; gzip_static always;"""

    def __init__(self, folder, port, pages):
        super().__init__(folder, port, pages)
        self.root = folder / "pages"
        paths = [path.relative_to(ROOT).as_posix() for path in self.files]
        self.by_host = {host: [f"{host}/{path}" for path in paths] for host in self.hosts}
        self.urls = [url for of_host in zip(*self.by_host.values()) for url in of_host]
        self.bytes *= len(self.hosts)

    def __enter__(self):
        for path in self.files:
            packed = self.root / f"{path.relative_to(ROOT)}.gz"
            packed.parent.mkdir(parents=True, exist_ok=True)
            packed.write_bytes(gzip.compress(path.read_bytes(), 6))
        names = ",".join(f"IP:{host.split('/')[2].split(':')[0]}" for host in self.hosts)
        certify(self.folder, "ca", ["-subj", "/CN=bench"])
        certify(self.folder, "cert", [
            "-CA", self.folder / "ca.pem", "-CAkey", self.folder / "ca.key.pem", "-subj", "/CN=pages",
            "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE",
        ])
        # Whom all trust, this program too.
        os.environ["SSL_CERT_FILE"] = str(self.folder / "ca.pem")
        return super().__enter__()


def certify(folder, name, options):
    """A certificate, and its key."""
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = ["-keyout", folder / f"{name}.key.pem", "-out", folder / f"{name}.pem"]
    subprocess.run([*command, *files, *options], check=True, capture_output=True)


class Reader:
    """`trawl crawl` with these fields."""

    def __init__(self, programs, name, fields):
        self.program, self.name, self.fields = programs / "trawl", name, fields

    def run(self, watch, site, servers, folder):
        (folder / "large.toml").write_text(self.fields)
        crawl(self.program, ["--spider", folder / "large.toml"], watch, site, folder)


def main():
    options = parser(__doc__, rounds=5)
    add_port(options)
    options.add_argument("--pages", type=int, default=240, help="of each host")
    options = options.parse_args()
    readers = [
        Reader(options.programs, "links and title", FEW),
        Reader(options.programs, "the same and ten fields by selectors", FEW + MANY),
    ]
    with stage(options, options.pages, LargeSite) as (folder, servers, site):
        costs = rounds(options, readers, servers, site, folder)
        print(f"\n{len(site.urls):,} pages of {site.bytes / len(site.urls) / 1000:.0f} KB on average, medians\n")
        print("| | pages for a second of own CPU | pages/s | peak memory |")
        print("|---|---|---|---|")
        for one in readers:
            middle = lambda figure: statistics.median(figure(run) for run in costs[one.name])
            print(
                f"| {one.name} | {middle(lambda run: len(site.urls) / run.own_cpu):,.0f} "
                f"| {middle(lambda run: len(site.urls) / run.seconds):,.0f} "
                f"| {middle(lambda run: run.peak_memory / 1e6):.0f} MB |"
            )
        write_costs(options, costs)


if __name__ == "__main__":
    main()
