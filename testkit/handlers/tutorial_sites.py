"""Two sites to learn scraping on, served on the loopback: quotes with authors, tags, a log-in and an API; books in categories. All that
they say is made of a seed, so that two runs see the same. `python tutorial_sites.py` serves both until it is stopped."""

import contextlib
import html
import http.cookies
import http.server
import json
import random
import secrets
import sys
import threading
import time
import urllib.parse
from collections import Counter

SYLLABLES = "ba ce di fo gu la me ni po ru sa te vi xo zu".split()
ON_A_PAGE = 10


class Words:
    """Words that mean nothing."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def word(self):
        return "".join(self.random.choices(SYLLABLES, k=self.random.randint(2, 3)))

    def name(self):
        return f"{self.word().title()} {self.word().title()}"

    def sentence(self, words=9):
        return " ".join(self.word() for _ in range(words)).capitalize() + "."


def page(title, body, next_url=None):
    more = f'<ul class="pager"><li class="next"><a href="{next_url}">Next</a></li></ul>' if next_url else ""
    title = html.escape(title)
    return f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}{more}</body></html>"


def slug(text):
    return text.lower().replace(" ", "-")


def slices(things, url):
    """Pages of so many things: the number of each from 1, its things, the next page's URL."""
    pages = max(1, -(-len(things) // ON_A_PAGE))
    for number in range(1, pages + 1):
        yield number, things[(number - 1) * ON_A_PAGE : number * ON_A_PAGE], url(number + 1) if number < pages else None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Whoever asked may have been killed.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Site:
    """A site on the loopback. It counts what it was asked for; every `flaky`th request it answers with the status `busy`."""

    def __init__(self, port=0, flaky=0, busy=503):
        self.asked, self.flaky, self.busy, self.lock = Counter(), flaky, busy, threading.Lock()
        # When each request came, in seconds.
        self.times = []
        # By the first word of what they call themselves.
        self.clients = Counter()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                self.answer(None)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                self.answer(dict(urllib.parse.parse_qsl(body.decode())))

            def answer(self, form):
                site.clients[self.headers.get("user-agent", "").split("/")[0]] += 1
                status, headers, body = site.respond(self.path, form, self.headers.get("cookie"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                # Whoever asked may have been killed.
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def requests(self):
        return len(self.times)

    def most_within(self, seconds):
        """The most requests that came within so many seconds."""
        times, first, most = sorted(self.times), 0, 0
        for last, came in enumerate(times):
            while came - times[first] >= seconds:
                first += 1
            most = max(most, last - first + 1)
        return most

    def respond(self, target, form, cookie):
        with self.lock:
            self.times.append(time.monotonic())
            self.asked[target] += 1
            if self.flaky and self.requests % self.flaky == 0:
                return self.busy, {"content-type": "text/plain"}, b"busy"
        url = urllib.parse.urlsplit(target)
        found = self.find(url.path, dict(urllib.parse.parse_qsl(url.query)), form, cookie)
        if found is None:
            return 404, {"content-type": "text/html"}, page("Not found", "").encode()
        if isinstance(found, str):
            return 200, {"content-type": "text/html; charset=utf-8"}, found.encode()
        return found


class Quotes(Site):
    """Quotes by page, by tag and by the API. Whoever has logged in sees a note below each quote."""

    def __init__(self, quotes=100, seed=1, **kwargs):
        words = Words(seed)
        self.authors = {slug(name): name for name in (words.name() for _ in range(max(3, quotes // 5)))}
        self.born = {author: words.sentence(4) for author in self.authors}
        tags = sorted({words.word() for _ in range(12)})
        pick = words.random
        self.quotes = [
            {
                "text": f"“{words.sentence()}”",
                "author": pick.choice(list(self.authors)),
                "tags": sorted(pick.sample(tags, pick.randint(0, 3))),
                "note": words.sentence(3),
            }
            for _ in range(quotes)
        ]
        self.tags = tags
        # Sessions are signed by nobody, so each is kept: its token, and whether it has logged in.
        self.sessions = {}
        super().__init__(**kwargs)

    def find(self, path, query, form, cookie):
        parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
        match parts:
            case ["" | "page", *rest]:
                return self.listing(self.quotes, lambda number: f"/page/{number}/", rest, cookie)
            case ["tag", tag, *rest] if tag in self.tags:
                quotes = [quote for quote in self.quotes if tag in quote["tags"]]
                return self.listing(quotes, lambda number: f"/tag/{tag}/page/{number}/", rest[1:], cookie)
            case ["author", author] if author in self.authors:
                return page(
                    self.authors[author], f'<h3 class="author-title">{self.authors[author]}</h3><p class="born">{self.born[author]}</p>'
                )
            case ["login"]:
                return self.login(form, cookie)
            case ["api", "quotes"]:
                return self.api(int(query.get("page", 1)))
            case _:
                return None

    def is_member(self, cookie):
        return self.sessions.get(session_of(cookie), {}).get("member", False)

    def listing(self, quotes, url, rest, cookie):
        wanted, member = int(rest[0]) if rest else 1, self.is_member(cookie)
        for number, some, following in slices(quotes, url):
            if number == wanted:
                body = "".join(self.quote(quote, member) for quote in some)
                access = '<a href="/logout">Logout</a>' if member else '<a href="/login">Login</a>'
                return page("Quotes", access + body, following)
        return None

    def quote(self, quote, member):
        tags = "".join(f'<a class="tag" href="/tag/{tag}/page/1/">{tag}</a>' for tag in quote["tags"])
        note = f'<p class="note">{quote["note"]}</p>' if member else ""
        name = self.authors[quote["author"]]
        return (
            f'<div class="quote"><span class="text">{quote["text"]}</span><span>by <small class="author">{name}</small>'
            f'<a class="about" href="/author/{quote["author"]}/">(about)</a></span><div class="tags">{tags}</div>{note}</div>'
        )

    def login(self, form, cookie):
        if form is None:
            session, token = secrets.token_hex(8), secrets.token_hex(8)
            self.sessions[session] = {"token": token, "member": False}
            fields = (
                f'<input type="hidden" name="csrf_token" value="{token}"><input name="username"><input type="password" name="password">'
            )
            body = page("Login", f'<form action="/login" method="post">{fields}<input type="submit" value="Login"></form>')
            return 200, {"content-type": "text/html; charset=utf-8", "set-cookie": f"session={session}; Path=/; HttpOnly"}, body.encode()
        session = self.sessions.get(session_of(cookie))
        if session is None or session["token"] != form.get("csrf_token") or not form.get("username"):
            return 403, {"content-type": "text/html"}, page("Refused", "").encode()
        session["member"] = True
        return 302, {"location": "/"}, b""

    def api(self, wanted):
        for number, some, following in slices(self.quotes, str):
            if number == wanted:
                body = {
                    "page": number,
                    "has_next": following is not None,
                    "quotes": [{**quote, "author": self.authors[quote["author"]]} for quote in some],
                }
                return 200, {"content-type": "application/json"}, json.dumps(body).encode()
        return None


def session_of(cookie):
    morsel = http.cookies.SimpleCookie(cookie or "").get("session")
    return morsel.value if morsel else None


class Books(Site):
    """Books in categories, a page for each. Some are out of stock, and one category's page links to a book that is not there."""

    def __init__(self, books=120, seed=2, **kwargs):
        words = Words(seed)
        pick = words.random
        self.categories = [words.word().title() for _ in range(6)]
        self.books = {}
        for number in range(1, books + 1):
            title = words.sentence(3)[:-1]
            self.books[f"{slug(title)}_{number}"] = {
                "title": title,
                "category": pick.choice(self.categories),
                "price": f"£{pick.randint(500, 6000) / 100:.2f}",
                "stock": pick.randint(0, 20),
                "rating": pick.choice("One Two Three Four Five".split()),
                "upc": f"{pick.getrandbits(64):016x}",
                "description": words.sentence(15),
            }
        super().__init__(**kwargs)

    def find(self, path, query, form, cookie):
        match path.strip("/").split("/"):
            case [""] | ["index.html"]:
                return self.listing("All books", list(self.books), 1, lambda number: f"/catalogue/page-{number}.html")
            case ["catalogue", name] if name.startswith("page-"):
                return self.listing("All books", list(self.books), number_of(name), lambda number: f"/catalogue/page-{number}.html")
            case ["catalogue", "category", category, name] if category.title() in self.categories:
                names = [book for book, about in self.books.items() if about["category"] == category.title()]
                wanted = 1 if name == "index.html" else number_of(name)
                return self.listing(category.title(), names, wanted, lambda number: f"page-{number}.html")
            case ["catalogue", name, "index.html"] if name in self.books:
                return self.book(self.books[name])
            case _:
                return None

    def listing(self, title, names, wanted, url):
        for number, some, following in slices(names, url):
            if number == wanted:
                menu = "".join(
                    f'<li><a href="/catalogue/category/{category.lower()}/index.html">{category}</a></li>' for category in self.categories
                )
                pods = "".join(pod(name, self.books[name]) for name in some)
                if title == self.categories[0] and number == 1:
                    pods += pod("gone_0", {"title": "Gone", "price": "£1.00"})
                return page(title, f'<ul class="nav-list">{menu}</ul>{pods}', following)
        return None

    def book(self, book):
        category = book["category"]
        stock = f"In stock ({book['stock']} available)" if book["stock"] else "Out of stock"
        return page(
            book["title"],
            f'<ul class="breadcrumb"><li><a href="/">Home</a></li>'
            f'<li><a href="/catalogue/category/{category.lower()}/index.html">{category}</a></li></ul>'
            f'<p class="price_color">{book["price"]}</p><p class="star-rating {book["rating"]}"></p>'
            f'<p class="availability">{stock}</p><table><tr><th>UPC</th><td>{book["upc"]}</td></tr></table>'
            f'<p class="description">{book["description"]}</p>',
        )


def pod(name, book):
    return (
        f'<article class="product_pod"><h3><a href="/catalogue/{name}/index.html" title="{book["title"]}">{book["title"][:12]}...</a></h3>'
        f'<p class="price_color">{book["price"]}</p></article>'
    )


def number_of(name):
    digits = name.removeprefix("page-").removesuffix(".html")
    return int(digits) if digits.isdigit() else 0


if __name__ == "__main__":
    print(f"quotes: {Quotes(port=8001).origin}", f"books: {Books(port=8002).origin}", sep="\n", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    sys.exit()
