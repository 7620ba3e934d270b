"""Odd HTTP answers, as bytes: what `scripts/odd-answers` serves to Chromium and to trawl.

Each is `(group, name, right, bytes)`: `right` is the text of the element `#m` that a reader is to find, or of the member `m` of JSON;
`bytes` are what the server sends, and `Answer` says how it ends the connection.
"""

import gzip
import json
import zlib
from typing import NamedTuple

PAGE = b"<!doctype html><title>t</title><p id=m>right</p>"
# So long that a reader which shows what has come so far has something to show.
LONG = PAGE + b"<!--" + b"x" * 4000 + b"-->"


class Answer(NamedTuple):
    """How the server answers a request."""

    group: str
    name: str
    right: str
    sent: bytes
    # How the connection ends: "close", "late" (half a second later), "reset", "hold" (it goes on), or by TLS "notify" and "cut", that is
    # without a closing message.
    end: str = "close"


def head(*fields, line="HTTP/1.1 200 OK", of_html=True):
    """A head of these lines, each `str` or `bytes`."""
    lines = [line, *(["Content-Type: text/html"] if of_html else []), *fields, ""]
    return b"".join((one if isinstance(one, bytes) else one.encode()) + b"\r\n" for one in lines)


def page(*fields, body=PAGE, **of_head):
    """A page with its length."""
    return head(*fields, f"Content-Length: {len(body)}", **of_head) + body


def chunks(*parts, end=b"\r\n", last=b"0\r\n\r\n"):
    return b"".join(b"%x" % len(part) + end + part + end for part in parts) + last


def chunked(body, *fields, **of_head):
    return head("Transfer-Encoding: chunked", *fields, **of_head) + body


def heads():
    for line in [
        "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1  200 OK", "http/1.1 200 OK", "HTTP/1.1 200OK", "HTTP/1.1\t200\tOK", "HTTP/1.1 OK",
        "HTTP/1.1", "HTTP 200 OK", "HTTP/1 200 OK", "HTTP/1.2 200 OK", "HTTP/01.1 200 OK", "HTTP/2 200 OK", "HTTP/3.0 200 OK",
        "HTTP/0.9 200 OK", "HTTP/1.1 200 " + "x" * 2000, "ICY 200 OK", " HTTP/1.1 200 OK", "\r\n\r\nHTTP/1.1 200 OK", "\nHTTP/1.1 200 OK",
        "\ufeffHTTP/1.1 200 OK", "xxxxHTTP/1.1 200 OK", "xxxxxHTTP/1.1 200 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 20 OK", "HTTP/1.1: 200 OK",
        "HTTP/1.1 200.0 OK", "HTTP/1.1 +200 OK",
    ]:
        yield repr(line[:40]), page(line=line)
    yield "status line in latin-1", page(line=b"HTTP/1.1 200 Tr\xe8s bien")
    yield "NUL in the status line", page(line=b"HTTP/1.1 200 O\0K")
    yield "lines end with LF", page().replace(b"\r\n", b"\n")
    yield "lines end with CR", page().replace(b"\r\n", b"\r")
    yield "lines end with CR CR LF", page().replace(b"\r\n", b"\r\r\n")
    yield "no status line", PAGE
    yield "no status line, no HTML first", b"text\n" + PAGE
    for name, fields in {
        "blank before the colon": ["X-A : b"],
        "blank before the colon of the type": ["Content-Type : text/html"],
        "field that is folded": ["X-A: b;", " c"],
        "field that is folded by a tab": ["Set-Cookie: a=b;", "\tpath=/"],
        "first field begins with a blank": [" X-A: b"],
        "line without a colon": ["no colon"],
        "field without a name": [": x"],
        "field with parentheses": ["(x): y"],
        "field with a blank in its name": ["X A: y"],
        "name in latin-1": [b"X-\xe9: y"],
        "name of 8 KB": ["X" * 8192 + ": y"],
        "NUL in a value": [b"X-A: a\0b"],
        "control character in a value": [b"X-A: a\x01b"],
        "DEL in a value": [b"X-A: a\x7fb"],
        "CR in a value": [b"X-A: a\rb"],
        "value in latin-1": [b"X-A: \xe9"],
        "200 fields": [f"X-{number}: y" for number in range(200)],
        "300 fields": [f"X-{number}: y" for number in range(300)],
        "200 KB in a field": ["X-A: " + "y" * 200_000],
        "odd cookies": ["Set-Cookie: =", "Set-Cookie: ;;;", b"Set-Cookie: a=\xff\x01", "Set-Cookie: a"],
        "status line twice": ["HTTP/1.1 200 OK"],
        "Connection: close twice": ["Connection: close", "connection: close, keep-alive"],
    }.items():
        yield name, page(*fields, of_html=False)
    yield "type is folded", page("Content-Type:", " text/html", of_html=False)
    yield "NUL in the name", page(b"X-\0: y")
    yield "no end of the head", head()[:-2]
    yield "no end of the head, before a body", head()[:-2] + PAGE


def lengths():
    size = len(PAGE)
    for name, values in {
        "twice": [f"{size}", f"{size}"],
        "twice in one field": [f"{size}, {size}"],
        "two of them": [f"{size}", f"{size - 1}"],
        "two of them in one field": [f"{size}, 9"],
        "-1": ["-1"],
        "with a plus": [f"+{size}"],
        "with its unit": [f"{size} bytes"],
        "in quotes": [f'"{size}"'],
        "empty": [""],
        "null": ["null"],
        "beyond 64 bits": ["99999999999999999999"],
        "with a fraction": [f"{size}.0"],
        "with zeros first": [f"000{size}"],
        "too short": [f"{size - 4}"],
    }.items():
        yield name, head(*(f"Content-Length: {value}" for value in values)) + PAGE
    yield "0 before a page", head("Content-Length: 0") + PAGE
    yield "none", head() + PAGE
    yield "none, with keep-alive", head("Connection: keep-alive") + PAGE
    yield "none, by HTTP/1.0", head(line="HTTP/1.0 200 OK") + PAGE
    yield "more follows it", page() + b"HTTP/1.1 404 No\r\n\r\n"


def transfers():
    whole = chunks(PAGE)
    halves = (PAGE[:9], PAGE[9:])
    for name, body in {
        "chunks": chunks(*halves),
        "lines end with LF": chunks(*halves, end=b"\n", last=b"0\n\n"),
        "sizes end with LF": b"".join(b"%x\n%s\r\n" % (len(half), half) for half in halves) + b"0\r\n\r\n",
        "no line end after the data": b"".join(b"%x\r\n%s" % (len(half), half) for half in halves) + b"0\r\n\r\n",
        "size in capitals": b"%X\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE),
        "size with zeros first": b"0000%x\r\n%s\r\n000\r\n\r\n" % (len(PAGE), PAGE),
        "blank after the size": b"%x  \r\n%s\r\n0  \r\n\r\n" % (len(PAGE), PAGE),
        "tab after the size": b"%x\t\r\n%s\r\n0\t\r\n\r\n" % (len(PAGE), PAGE),
        "blank before the size": b" %x\r\n%s\r\n 0\r\n\r\n" % (len(PAGE), PAGE),
        "0x before the size": b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE),
        "size below 0": b"-1\r\n" + whole,
        "extension": b"%x;a=b\r\n%s\r\n0;c\r\n\r\n" % (len(PAGE), PAGE),
        "odd extension": b"%x ;a=\"b\\\"\xff;\x01\r\n%s\r\n0;;\r\n\r\n" % (len(PAGE), PAGE),
        "extension of 8 KB": b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(PAGE), b"a" * 8192, PAGE),
        "empty line before the size": b"\r\n" + whole,
        "trailers": chunks(PAGE, last=b"0\r\nX-A: b\r\nX-B : c\r\n\r\n"),
        "odd trailers": chunks(PAGE, last=b"0\r\nno colon\r\n folded\r\n\r\n"),
        "no end of the last chunk": chunks(PAGE, last=b"0\r\n"),
        "no line end of the last chunk": chunks(PAGE, last=b"0"),
        "more after the last chunk": whole + b"more",
        "no chunks": PAGE,
    }.items():
        yield name, chunked(body)
    yield "by HTTP/1.0", chunked(whole, line="HTTP/1.0 200 OK")
    yield "by HTTP/1.0, no chunks", chunked(PAGE, line="HTTP/1.0 200 OK")
    yield "beside a length", chunked(whole, f"Content-Length: {len(whole)}")
    yield "beside a wrong length", chunked(whole, "Content-Length: 5")
    for value, body in [("Chunked", whole), ("chunked, chunked", whole), ("chunked;q=1", whole), ("x-chunked", whole), ("", PAGE),
                        ("identity", PAGE), ("gzip, chunked", chunks(gzip.compress(PAGE))), ("identity, chunked", whole), ("none", PAGE),
                        ("\tchunked", whole), ("chunked, identity", whole), ("gzip", gzip.compress(PAGE))]:
        yield f"Transfer-Encoding: {value}", head(f"Transfer-Encoding: {value}") + body
    yield "Transfer-Encoding: chunked twice", chunked(whole, "Transfer-Encoding: chunked")


def codings():
    gz, raw, zl = gzip.compress(PAGE), zlib.compress(PAGE)[2:-4], zlib.compress(PAGE)
    named = gz[:3] + b"\x08" + gz[4:10] + b"page.html\0" + gz[10:]
    extra = gz[:3] + b"\x04" + gz[4:10] + b"\x02\0ab" + gz[10:]
    checked = gz[:3] + b"\x02" + gz[4:10] + b"ab" + gz[10:]
    long = gzip.compress(PAGE + bytes(n * 7919 % 251 + 1 for n in range(20_000)))
    for label in ["UTF-8", "none", "identity", "", "text/html", "compress", "gzip", "deflate", "br", "zstd", "binary", "8bit", "utf8, none",
                  "sdch", "aws-chunked", "exi", "*", "x-unknown", "chunked", "gzip, br"]:
        yield f"{label!r} over a plain page", page(f"Content-Encoding: {label}")
    for name, label, body in [
        ("gzip", "gzip", gz), ("x-gzip", "x-gzip", gz), ("capitals", "GZIP", gz), ("in quotes", '"gzip"', gz), ("with a weight", "gzip;q=1", gz),
        ("with a name", "gzip", named), ("with an extra field", "gzip", extra), ("with a checksum of the head", "gzip", checked),
        ("NULs after it", "gzip", gz + bytes(50)), ("text after it", "gzip", gz + b"<!-- cached -->"), ("two members", "gzip", gzip.compress(PAGE[:20]) + gzip.compress(PAGE[20:])),
        ("no trailer", "gzip", gz[:-8]), ("half a trailer", "gzip", gz[:-4]), ("wrong checksum", "gzip", gz[:-8] + b"abcd" + gz[-4:]),
        ("wrong size", "gzip", gz[:-4] + b"abcd"), ("cut, with its length", "gzip", long[:len(long) // 2]), ("twice", "gzip, gzip", gzip.compress(gz)),
        ("once, said twice", "gzip, gzip", gz), ("with aws-chunked", "aws-chunked,gzip", gz), ("with identity", "identity, gzip", gz),
        ("zlib", "deflate", zl), ("bare deflate", "deflate", raw), ("zlib without its checksum", "deflate", zl[:-4]), ("zlib with a tail", "deflate", zl + b"tail"),
        ("gzip said to be deflate", "deflate", gz), ("zlib said to be gzip", "gzip", zl), ("deflate in gzip", "deflate, gzip", gzip.compress(zl)), ("x-deflate", "x-deflate", zl),
        ("gzip said to be br", "br", gz), ("gzip of nothing", "gzip", gz[:10]),
    ]:
        yield name, page(f"Content-Encoding: {label}", body=body)
    yield "gzip in two fields", page("Content-Encoding: gzip", "Content-Encoding: gzip", body=gzip.compress(gz))
    yield "gzip, not said", page(body=gz)
    yield "gzip of a type of archives", page("Content-Type: application/x-gzip", "Content-Encoding: gzip", body=gz, of_html=False)
    try:
        import brotli
        import zstandard
    except ImportError:
        return
    br, zstd = brotli.compress(PAGE), zstandard.compress(PAGE)
    for name, label, body in [("br", "br", br), ("br with a tail", "br", br + b"tail"), ("br, cut", "br", br[:-2]), ("zstd", "zstd", zstd), ("zstd with a tail", "zstd", zstd + b"tail"),
                              ("zstd, two frames", "zstd", zstandard.compress(PAGE[:20]) + zstandard.compress(PAGE[20:])), ("br in gzip", "br, gzip", gzip.compress(br)),
                              ("gzip in br", "gzip, br", brotli.compress(gz)), ("zstd, cut", "zstd", zstd[:-3])]:
        yield name, page(f"Content-Encoding: {label}", body=body)


def charsets():
    def text(word, encoding, *fields, before="", of_html=True, after=""):
        body = f"<!doctype html>{before}<title>t</title><p id=m>{word}</p>{after}".encode(encoding)
        return word, page(*fields, body=body, of_html=of_html)

    def typed(content_type, word="Цена", encoding="cp1251", **of_text):
        return text(word, encoding, f"Content-Type: {content_type}", of_html=False, **of_text)

    for parameter in ["charset=windows-1251", 'charset="windows-1251"', "charset='windows-1251'", "charset = windows-1251", "CHARSET=WINDOWS-1251",
                      "charset=cp1251", "charset=x-cp1251", 'charset="windows-1251', "a=b; charset=windows-1251", "charset=windows-1251; a",
                      "charset=windows-1251,utf-8", "charset=windows-1251; charset=utf-8", "charset:windows-1251", 'a="; charset=utf-8"; charset=windows-1251']:
        yield f"text/html; {parameter}", *typed(f"text/html; {parameter}")
    yield "text/html charset=windows-1251", *typed("text/html charset=windows-1251")
    yield "unknown, before a meta", *typed("text/html; charset=nonsense", before="<meta charset=windows-1251>")
    yield "header before a meta", *typed("text/html; charset=windows-1251", before="<meta charset=utf-8>")
    for name, before in {
        "meta": "<meta charset=windows-1251>",
        "meta in capitals": "<META CHARSET='WINDOWS-1251'/>",
        "meta http-equiv": "<meta http-equiv=content-type content='text/html; charset=windows-1251'>",
        "meta http-equiv, content first": "<meta content=text/html;charset=windows-1251 http-equiv=Content-Type>",
        "meta after 2 KB in the head": f"<head><script>/*{' ' * 2048}*/</script><meta charset=windows-1251>",
        "meta after a comment of 2 KB": f"<!--{' ' * 2048}--><meta charset=windows-1251>",
        "meta after a script with a meta": "<script>'<meta charset=utf-8>'</script><meta charset=windows-1251>",
        "two metas": "<meta charset=windows-1251><meta charset=utf-8>",
    }.items():
        yield name, *text("Цена", "cp1251", before=before)
    yield "meta in the body after 2 KB", *text("Цена", "cp1251", before=f"<body><p>{' ' * 2048}</p><meta charset=windows-1251>")
    yield "meta that says utf-16", *text("Größe", "utf-8", before="<meta charset=utf-16>")
    yield "meta that says x-user-defined", *text("caf\u00e9", "cp1252", before="<meta charset=x-user-defined>")
    word = "Größe"
    plain = f"<!doctype html><p id=m>{word}</p>"
    xml = "<?xml version='1.0' encoding='windows-1251'?><html><p id=m>Цена</p>"
    yield "XML declaration in HTML", "Цена", page(body=xml.encode("cp1251"))
    xhtml = "<?xml version='1.0' encoding='windows-1251'?><html xmlns='http://www.w3.org/1999/xhtml'><p id='m'>Цена</p></html>"
    yield "XML declaration in XHTML", "Цена", page("Content-Type: application/xhtml+xml", body=xhtml.encode("cp1251"), of_html=False)
    yield "UTF-8 that nobody names", word, page(body=plain.encode())
    long = f"<!doctype html><p id=m>Съешь же ещё этих мягких французских булок</p><p>{'да выпей чаю ' * 20}</p>"
    yield "windows-1251 that nobody names", "Съешь же ещё этих мягких французских булок", page(body=long.encode("cp1251"))
    yield "byte order mark against the header", word, page("Content-Type: text/html; charset=windows-1251", body="\ufeff".encode() + plain.encode(), of_html=False)
    yield "two byte order marks", word, page(body="\ufeff\ufeff".encode() + plain.encode())
    for name, encoding in {"UTF-16LE": "utf-16-le", "UTF-16BE": "utf-16-be"}.items():
        body = plain.encode(encoding)
        yield f"{name} by its mark", word, page(body="\ufeff".encode(encoding) + body)
        yield f"{name} by its mark, against the header", word, page("Content-Type: text/html; charset=utf-8", body="\ufeff".encode(encoding) + body, of_html=False)
        yield f"{name} by the header", word, page(f"Content-Type: text/html; charset={name}", body=body, of_html=False)
        yield f"{name} that nobody names", word, page(body=body)
    yield "charset=utf-16, and it is", word, page("Content-Type: text/html; charset=utf-16", body=plain.encode("utf-16-le"), of_html=False)
    yield "charset=unicode", word, page("Content-Type: text/html; charset=unicode", body=plain.encode("utf-16-le"), of_html=False)
    for label, encoding, word in [("GBK", "gbk", "價格价"), ("gb2312", "gbk", "價格价"), ("gb18030", "gb18030", "价𠀀"), ("Shift_JIS", "cp932", "価格①"),
                                  ("EUC-JP", "euc_jp", "価格"), ("ISO-2022-JP", "iso2022_jp", "価格"), ("Big5", "big5hkscs", "價格"), ("EUC-KR", "cp949", "가격똠"),
                                  ("iso-8859-1", "cp1252", "5 € “a”"), ("us-ascii", "cp1252", "5 €"), ("iso-8859-9", "cp1254", "ğ €"), ("iso-8859-15", "iso8859-15", "5 €"),
                                  ("koi8-r", "koi8-r", "Цена"), ("ibm866", "cp866", "Цена"), ("macintosh", "mac-roman", "café"), ("tis-620", "cp874", "ราคา"),
                                  ("windows-1256", "cp1256", "سعر"), ("iso-8859-8-i", "iso8859-8", "מחיר"), ("utf8", "utf-8", "Größe"), ("unicode-1-1-utf-8", "utf-8", "Größe")]:
        yield label, *typed(f"text/html; charset={label}", word, encoding)
    yield "x-user-defined", "caf\uf7e9", page("Content-Type: text/html; charset=x-user-defined", body=b"<p id=m>caf\xe9</p>", of_html=False)
    yield "utf-8, and a byte is wrong", "caf\ufffd", page("Content-Type: text/html; charset=utf-8", body=b"<p id=m>caf\xe9</p>", of_html=False)
    yield "utf-7", "+BCYENQQ9BDA-", page("Content-Type: text/html; charset=utf-7", body=b"<p id=m>+BCYENQQ9BDA-</p>", of_html=False)
    of_json = json.dumps({"m": "Цена"}, ensure_ascii=False)
    for name, content_type, body in [("JSON", "application/json", of_json.encode()), ("JSON with a mark", "application/json", b"\xef\xbb\xbf" + of_json.encode()),
                                     ("JSON in its charset", "application/json; charset=windows-1251", of_json.encode("cp1251")),
                                     ("JSON in UTF-16", "application/json; charset=utf-16le", of_json.encode("utf-16-le")),
                                     ("JSON that is UTF-8, whatever it says", "application/json; charset=windows-1251", of_json.encode())]:
        yield name, "Цена", page(f"Content-Type: {content_type}", body=body, of_html=False)


def types():
    for value in ["", "html", "text", "text/", "text/html;", "text/html; charset", "TEXT/HTML", "text/html charset=utf-8", "text/html, charset=utf-8", "text/html: charset=utf-8", "text/html,text/html",
                  "text\\html", "text /html", '"text/html"', "text/htm", "text/html/", "unknown/unknown", "application/unknown", "*/*", "(null)", "text/xhtml", "application/xhtml",
                  "text/x-server-parsed-html", "charset=utf-8", "text/html\x00", "Content-Type: text/html", "application/html", "text/html5"]:
        yield f"Content-Type: {value!r}", page(f"Content-Type: {value}", of_html=False)
    yield "none", page(of_html=False)
    yield "none, and no doctype", page(of_html=False, body=b"\n  <!-- x --><p id=m>right</p>")
    yield "none, and XML first", page(of_html=False, body=b"<?xml version='1.0'?>\n" + PAGE)
    yield "none, and nosniff", page("X-Content-Type-Options: nosniff", of_html=False)
    yield "two, the second HTML", page("Content-Type: image/png", "Content-Type: text/html", of_html=False)
    yield "two, the second no type", page("Content-Type: text/html", "Content-Type: utf-8", of_html=False)
    yield "two, the second another", page("Content-Type: text/html", "Content-Type: text/plain", of_html=False)
    xhtml = b"<html xmlns='http://www.w3.org/1999/xhtml'><p id='m'>right</p></html>"
    for value in ["application/xhtml+xml", "application/xml", "text/xml", "application/vnd.wap.xhtml+xml", "application/x+xml"]:
        yield f"XHTML as {value}", page(f"Content-Type: {value}", body=xhtml, of_html=False)
    yield "an attachment", page("Content-Disposition: attachment; filename=x.html")
    yield "application/octet-stream", page("Content-Type: application/octet-stream", of_html=False)
    yield "image/png", page("Content-Type: image/png", of_html=False)
    yield "text/plain", page("Content-Type: text/plain", of_html=False)
    yield "multipart/x-mixed-replace", page("Content-Type: multipart/x-mixed-replace; boundary=b", of_html=False, body=b"--b\r\nContent-Type: text/html\r\n\r\n" + PAGE + b"\r\n--b--\r\n")


def statuses():
    for code in [201, 202, 203, 206, 208, 226, 299, 300, 304, 305, 306, 399, 401, 403, 404, 410, 418, 451, 500, 600, 999]:
        yield f"{code}", page(line=f"HTTP/1.1 {code} X")
    yield "204 with a page", page(line="HTTP/1.1 204 No Content")
    yield "205 with a page", page(line="HTTP/1.1 205 Reset")
    for code in [100, 102, 103, 199]:
        yield f"{code} before", f"HTTP/1.1 {code} X\r\nLink: </x>\r\n\r\n".encode() + page()
    yield "100 before, lines end with LF", b"HTTP/1.1 100 Continue\n\n" + page()
    yield "100 ten times", b"HTTP/1.1 100 Continue\r\n\r\n" * 10 + page()
    yield "101, not asked for", page(line="HTTP/1.1 101 Switching")
    yield "206 with a range", page("Content-Range: bytes 0-47/48", line="HTTP/1.1 206 Partial")


def redirects():
    def to(location, code=302, *fields, body=b""):
        field = b"Location: " + (location if isinstance(location, bytes) else location.encode())
        return page(field, *fields, body=body, line=f"HTTP/1.1 {code} X")

    for code in [300, 301, 302, 303, 305, 306, 307, 308, 399]:
        yield f"{code}", "got /at/x", to("/at/x", code, body=PAGE if code in (300, 305, 306, 399) else b"")
    yield "201 with a Location", "right", to("/at/x", 201, body=PAGE)
    yield "200 with a Location", "right", to("/at/x", 200, body=PAGE)
    for name, location, right in [
        ("relative", "at/x", "/at/x"), ("query alone", "?q", "/?q"), ("host without scheme", "//HOST/at/x", "/at/x"), ("blanks around", "   /at/x  ", "/at/x"),
        ("blank within", "/at/a b", "/at/a%20b"), ("fragment", "/at/x#top", "/at/x"), ("latin-1", b"/at/caf\xe9", "/at/caf%E9"), ("UTF-8", "/at/café", "/at/caf%C3%A9"), ("GBK", "/at/价".encode("gbk"), "/at/%BC%DB"),
        ("UTF-8 in the query", "/at/?q=é", "/at/?q=%C3%A9"), ("latin-1 in the query", b"/at/?q=\xe9", "/at/?q=%E9"), ("backslashes", "\\at\\x", "/at/x"), ("scheme in capitals", "HTTP://HOST/at/x", "/at/x"),
        ("no slash after the scheme", "http:at/x", "/at/x"), ("three slashes", "http:///HOST/at/x", "/at/x"), ("tab within", "/at/\tx", "/at/x"), ("broken percent", "/at/%zz%", "/at/%zz%"),
        ("brackets", "/at/[x]|{y}", "/at/[x]|%7By%7D"), ("quotes", '/at/"x"', "/at/%22x%22"), ("dots", "/at/../at/./x", "/at/x"), ("double slash", "/at//x", "/at//x"), ("long", "/at/" + "x" * 1500, "/at/" + "x" * 1500),
        ("percent-encoded letters", "/at/%7Ejoe%c3%a9", "/at/%7Ejoe%c3%a9"), ("entities", "/at/?a=1&amp;b=2", "/at/?a=1&amp;b=2"), ("NUL", b"/at/\0x", None), ("quoted whole", '"/at/x"', "/%22/at/x%22"),
        ("a port that is none", "http://HOST:port/at/x", None), ("file", "file:///etc/passwd", None),
    ]:
        yield name, right and f"got {right}", to(location)
    yield "empty, with a page", "right", to("", body=PAGE)
    yield "blank, with a page", "right", to("  ", body=PAGE)
    yield "none, with a page", "right", page(line="HTTP/1.1 302 Found")
    yield "twice the same", "got /at/x", to("/at/x", 302, "Location: /at/x")
    yield "two", "got /at/x", to("/at/x", 302, "Location: /at/y")
    yield "folded", "got /at/x", head("Location:", "  /at/x", "Content-Length: 0", line="HTTP/1.1 302 Found")
    yield "blank before the colon", "got /at/x", head("Location : /at/x", "Content-Length: 0", line="HTTP/1.1 302 Found")
    yield "wrong length", "got /at/x", head("Location: /at/x", "Content-Length: 99", line="HTTP/1.1 302 Found") + b"x"
    yield "broken gzip", "got /at/x", to("/at/x", 302, "Content-Encoding: gzip", body=b"\x1f\x8bx")
    yield "broken chunks", "got /at/x", chunked(b"zz\r\n", "Location: /at/x", line="HTTP/1.1 302 Found")
    yield "Refresh field", "got /at/x", page("Refresh: 0; url=/at/x")
    yield "meta refresh", "got /at/x", page(body=b"<!doctype html><meta http-equiv=refresh content='0; url=/at/x'>")
    yield "meta refresh in a noscript", "right", page(body=b"<noscript><meta http-equiv=refresh content='0; url=/at/x'></noscript>" + PAGE)
    yield "101 and then a redirect", "got /at/x", b"HTTP/1.1 103 X\r\n\r\n" + to("/at/x")
    yield "HTTP/1.0", "got /at/x", b"HTTP/1.0 302\nLocation: /at/x\n\n"


def ends():
    yield "too long a length", "right", head("Content-Length: 9999") + LONG, "late"
    yield "no last chunk", "right", chunked(chunks(LONG, last=b"")), "late"
    yield "cut in a chunk", "right", chunked(chunks(LONG)[:2000]), "late"
    yield "reset after a page of no length", "right", head() + PAGE, "reset"
    yield "reset after the whole page", "right", page(), "reset"
    yield "held open after the whole page", "right", page(), "hold"
    yield "held open beside a coding that is none", "right", page("Transfer-Encoding: identity"), "hold"
    yield "held open after the last chunk", "right", chunked(chunks(PAGE)), "hold"
    yield "held open after 204", None, head(line="HTTP/1.1 204 No Content"), "hold"
    for end in ("notify", "cut"):
        yield f"TLS, {end}: no length", "right", head() + PAGE, end
        yield f"TLS, {end}: length", "right", page(), end
        yield f"TLS, {end}: chunks", "right", chunked(chunks(PAGE)), end
        yield f"TLS, {end}: no last chunk", "right", chunked(chunks(LONG, last=b"")), end
        yield f"TLS, {end}: too long a length", "right", head("Content-Length: 9999") + LONG, end
        yield f"TLS, {end}: gzip of no length", "right", head("Content-Encoding: gzip") + gzip.compress(PAGE), end
        yield f"TLS, {end}: lines end with LF", "right", page().replace(b"\r\n", b"\n"), end


def answers():
    """All answers, each of which is asked for on a host of its own."""
    for group, of_group in {"head": heads, "length": lengths, "transfer": transfers, "coding": codings, "type": types, "status": statuses}.items():
        for name, sent in of_group():
            yield Answer(group, name, "right", sent)
    for name, right, sent in charsets():
        yield Answer("charset", name, right, sent)
    for name, right, sent in redirects():
        yield Answer("redirect", name, right, sent)
    for name, right, sent, end in ends():
        yield Answer("end", name, right, sent, end)
