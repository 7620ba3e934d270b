"""The site: 10,000 pages of Debian's rust-doc, served by nginx as 20 hosts."""

import pathlib
import subprocess
import time
import urllib.request

ROOT = pathlib.Path("/usr/share/doc/rust-doc/html")
HOSTS = 20
# What is smaller is a page that only leads to another.
SMALLEST, LARGEST = 1024, 256 * 1024

CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000; open_file_cache max=20000;
  types {{ text/html html; application/xml xml; }}
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    {listen}
    root {root};
    {settings}
    location = /robots.txt {{ return 404; }}
    location /small/ {{
      default_type text/html; return 200 "<title>$uri</title><p>A small page. <a href='/'>home</a>";
    }}
    location ~ ^/(sitemap.xml|all.html)$ {{ root {folder}/$server_addr; gzip_static off; }}
  }}
}}
"""


class Site:
    """Started by `with`; `urls` are its pages, in turn of each host, `files` hold them, and `sitemaps` name them."""

    scheme, listen, settings, root = "http", "", "", ROOT
    sizes = SMALLEST, LARGEST

    def __init__(self, folder, port, pages):
        self.folder, self.port = folder, port
        self.hosts = [f"{self.scheme}://127.0.0.{number}:{port}" for number in range(1, HOSTS + 1)]
        self.sitemaps = [f"{host}/sitemap.xml" for host in self.hosts]
        self.files = choose(pages, *self.sizes)
        self.bytes = sum(path.stat().st_size for path in self.files)
        paths = [path.relative_to(ROOT).as_posix() for path in self.files]
        self.by_host = {host: [f"{host}/{path}" for path in paths[at::HOSTS]] for at, host in enumerate(self.hosts)}
        self.urls = [url for of_host in zip(*self.by_host.values()) for url in of_host]

    def __enter__(self):
        for host, urls in self.by_host.items():
            root = self.folder / host.split("/")[2].split(":")[0]
            root.mkdir(parents=True)
            entries = "".join(f"<url><loc>{url}</loc></url>\n" for url in urls)
            schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
            (root / "sitemap.xml").write_text(f'<urlset xmlns="{schema}">\n{entries}</urlset>\n')
            links = "".join(f'<a href="{url}">page</a>\n' for url in urls)
            (root / "all.html").write_text(f"<title>all pages</title>\n{links}")
        (self.folder / "urls.txt").write_text("\n".join(self.urls) + "\n")
        listen = "".join(f"listen 127.0.0.{number}:{self.port} {self.listen}; " for number in range(1, HOSTS + 1))
        settings = CONFIGURATION.format(
            folder=self.folder, listen=listen, root=self.root, settings=self.settings.format(folder=self.folder)
        )
        (self.folder / "nginx.conf").write_text(settings)
        self.server = subprocess.Popen(["nginx", "-c", self.folder / "nginx.conf"])
        for _ in range(100):
            try:
                urllib.request.urlopen(self.sitemaps[0]).read()
                return self
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        raise SystemExit(f"nginx does not answer: see {self.folder}/nginx.log")

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()


def choose(count, smallest, largest):
    """So many pages of these sizes, evenly from all."""
    files = sorted(path for path in ROOT.rglob("*.html") if not path.is_symlink())
    pages = [path for path in files if smallest <= path.stat().st_size <= largest]
    if len(pages) < count:
        raise SystemExit(f"{ROOT} has {len(pages)} pages, not {count}: is the package rust-doc installed?")
    return [pages[at * len(pages) // count] for at in range(count)]
