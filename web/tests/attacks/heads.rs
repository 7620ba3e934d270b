//! Answers that are no HTTP, or more of it than anybody wants.

use crate::server::{Script, head};
use crate::{attack, settings, try_all};

#[tokio::test]
async fn a_head_is_bounded_and_well_formed() {
    let bytes = |name, bytes: &[u8], gets| attack(name, Script::bytes(bytes), gets);
    let endless = |name, start: &str, again: &str, gets| {
        attack(name, Script::endless(start, again.repeat(64 * 1024 / again.len())), gets)
    };
    let open = head(200, "").trim_end().to_owned() + "\r\n";
    let many = |count| "x: y\n".repeat(count);
    let attacks = vec![
        attack("256 headers: honest", Script::page(&many(254), "hello"), "page: hello"),
        attack("257 headers", Script::page(&many(255), "hello"), "size: message head is too large"),
        attack("100,000 headers", Script::page(&many(100_000), "hello"), "size: message head is too large"),
        attack(
            "a header of 10 MB",
            Script::page(&format!("x: {}", "y".repeat(10 << 20)), ""),
            "size: message head is too large",
        ),
        endless("headers without end", &open, "x: y\r\n", "size: message head is too large"),
        endless("a header without end", &format!("{open}x: "), "y", "size: message head is too large"),
        endless("a header name without end", &open, "y", "size: message head is too large"),
        endless("a status line without end", "HTTP/1.1 200 ", "y", "size: message head is too large"),
        bytes(
            "a connection closed without a word",
            b"",
            "connect: connection closed before message completed",
        ),
        bytes(
            "a connection closed within the head",
            b"HTTP/1.1 200 OK\r\nx:",
            "connect: connection closed before message completed",
        ),
        bytes("garbage", b"\x00\x01\x02\xff\xfe\r\n\r\n", "connect: invalid HTTP version parsed"),
        bytes("HTTP/0.9", b"<html>hello</html>", "connect: invalid HTTP version parsed"),
        bytes("another protocol", b"220 mail.example.com ESMTP\r\n", "connect: invalid HTTP version parsed"),
        bytes("a TLS alert", b"\x15\x03\x03\x00\x02\x02\x28", "connect: invalid HTTP version parsed"),
        bytes("HTTP/3.0", b"HTTP/3.0 200 OK\r\n\r\nhello", "page: hello"),
        bytes("a status that is no number", b"HTTP/1.1 OK\r\n\r\n", "page: "),
        bytes("status 000", b"HTTP/1.1 000 X\r\n\r\n", "connect: invalid HTTP status-code parsed"),
        bytes("status 999", b"HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n", "http: 999"),
        bytes(
            "a switch to another protocol",
            b"HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            "http: 101",
        ),
        attack("a header with a zero byte", Script::page("x: a\0b", "hello"), "page: hello"),
        attack("a header folded over two lines", Script::page("x: a\n b", "hello"), "page: hello"),
        attack("a space before a header's colon", Script::page("content-length : 1", "hello"), "page: h"),
        attack("a header without a colon", Script::page("hello", "hello"), "page: hello"),
        bytes(
            "100 interim answers, then a page",
            &[
                b"HTTP/1.1 103 X\r\nlink: x\r\n\r\n".repeat(100).as_slice(),
                head(200, "").as_bytes(),
                b"hello",
            ]
            .concat(),
            "page: hello",
        ),
        bytes("a line break in the reason", b"HTTP/1.1 200 a\rb\r\n\r\nhello", "page: hello"),
    ];
    try_all("Heads", &settings(), attacks).await;
}
