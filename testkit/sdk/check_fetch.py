"""What programs ask the web for by themselves, by http and https: `fetch` of the module for Python, and the examples for Python and Node. Each
program does one task, as a worker gives it. Run by scripts/sdk, with the names of the languages."""

import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60

SPIDER = """
[handler]
run = ["/usr/bin/env", "{command}", "{program}"]
[politeness]
rate = "unlimited"
"""


class Host:
    """A host at a port of the loopback, over TLS if it is given a context, and how often each path was asked for."""

    def __init__(self, tls=None):
        self.asked = Counter()
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                host.asked[self.path] += 1
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, fields, content = host.answer_to(self, body.decode())
                self.send_response(status)
                for name, value in {**fields, "content-length": len(content)}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.origin = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"

    def answer_to(self, asked, body):
        json_type, path = {"content-type": "application/json"}, asked.path.split("?")[0]
        if path == "/echo":
            said = {"method": asked.command, "path": asked.path, "body": body}
            said |= {"type": asked.headers["content-type"], "agent": asked.headers["user-agent"]}
            return 200, json_type, json.dumps(said).encode()
        return {
            "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /forbidden\n"),
            "/moved": (302, {"location": "/echo"}, b""),
            "/latin": (200, {"content-type": "text/plain; charset=iso-8859-1"}, "grün".encode("iso-8859-1")),
            "/busy": (429, {"retry-after": "600"}, b""),
            "/page": (200, {"content-type": "text/html"}, b"<title>Shop</title>"),
            "/products": (200, json_type, json.dumps(self.products()).encode()),
            "/details": (200, json_type, b'{"price": 7}'),
        }.get(path, (404, {}, b""))

    def products(self):
        return [{"name": "one", "details": f"{self.origin}/details"}, {"name": "two", "details": f"{self.origin}/forbidden"}]


def certificate(folder):
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*request, *subject, *files], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return tls


def done(folder, command, program, recipe):
    """What a program answers to one task."""
    spider = folder / program.stem
    spider.mkdir(exist_ok=True)
    for file in (program, ROOT / "sdk/python/trawl_handler.py"):
        shutil.copy(file, spider)
    (spider / "spider.toml").write_text(SPIDER.format(command=command, program=program.name))
    environment = {
        **os.environ,
        "SSL_CERT_FILE": str(folder / "cert.pem"),
        "TRAWL__FETCH__ALLOW_PRIVATE": "true",
        "TRAWL__FETCH__PORTS": "1-65535",
    }
    trying = [os.environ["TRAWL"], "spider", "try", spider / "spider.toml", "--task", recipe, "--json"]
    tried = subprocess.run(trying, env=environment, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    assert tried.returncode == 0, tried
    answer = json.loads(tried.stdout)
    assert answer["result"] == 0, answer
    return answer


def main(languages):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for host in (Host(certificate(folder)), Host()):
            done(folder, "python3", ROOT / "testkit/sdk/fetching.py", host.origin)
            asked = done(folder, "python3", ROOT / "sdk/python/examples/ask.py", f"{host.origin}/products")
            assert asked["items"] == [{"name": "one", "price": 7}], asked
            assert "robots.txt forbids it" in asked["logs"][0]["message"], asked
            if "typescript" in languages:
                asked = done(folder, "node", ROOT / "sdk/typescript/examples/ask.mjs", f"{host.origin}/page")
                assert asked["items"] == [{"status": 200, "title": "Shop"}], asked
            assert host.asked["/robots.txt"] >= 2 and "/forbidden" not in host.asked, host.asked
    print("programs fetch by http and https as their workers do")


main(sys.argv[1:])
