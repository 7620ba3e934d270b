//! The frames that servers send, and the expected results.

use super::frames::*;
use super::server::Script;

/// The frames that a server sends, and the expected result: a class of failure or `page`, and a part of the message or
/// the page.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) script: Script,
    pub(super) gets: &'static str,
}

const MALFORMED: &str = "connect: unspecific protocol error detected";
const MALFORMED_BODY: &str = "body: unspecific protocol error detected";
const TOO_MANY_CONTINUATIONS: &str = "connect: too_many_continuations";
const TOO_MANY_DATA_FRAMES: &str = "body: too_many_data_frames";
const TOO_LARGE: &str = "size: larger than 65536 bytes (`fetch.max_body`)";
const FLOOD: &str = "timeout: no complete answer within 300ms (`fetch.timeout`)";
const WAIT: &str = "timeout: no complete answer within 30s (`fetch.timeout`)";

/// Sends these frames, and then waits.
fn once(name: &'static str, frames: impl Into<Vec<u8>>, gets: &'static str) -> Attack {
    let script = Script { start: frames.into(), again: Vec::new(), reads: true };
    Attack { name, script, gets }
}

/// Sends `start`, and then `again` repeatedly without end.
fn endless(name: &'static str, start: Vec<u8>, again: impl AsRef<[u8]>, gets: &'static str) -> Attack {
    let again = again.as_ref();
    let again = again.repeat((64 * 1024 / again.len()).max(1));
    Attack { name, script: Script { start, again, reads: true }, gets }
}

/// The head of a page, with the body still to come.
fn open() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, status("200"))
}

/// The head of a page, without its end.
fn begun() -> Vec<u8> {
    frame(HEADERS, 0, 1, status("200"))
}

/// A head that is a whole response.
fn only(fields: impl AsRef<[u8]>) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 1, fields)
}

/// A page with additional fields.
fn with(fields: &[(&str, &str)]) -> Vec<u8> {
    let fields: Vec<_> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    page(&fields, "hello")
}

fn number(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A setting (RFC 9113 6.5.1).
fn setting(name: u8, value: u32) -> Vec<u8> {
    [&[0, name], number(value).as_slice()].concat()
}

/// Attacks that the client's own limits end.
pub(super) fn limited() -> Vec<Attack> {
    [honest(), connections(), streams(), heads(), bodies()].into_iter().flatten().collect()
}

fn honest() -> Vec<Attack> {
    let interim = frame(HEADERS, END_HEADERS, 1, field(":status", "103"));
    let padded = [&[200][..], b"hello", &[0; 200]].concat();
    let trailer = frame(HEADERS, END_HEADERS | END_STREAM, 1, field("x", "y"));
    let no_window = frame(SETTINGS, 0, 0, setting(4, 0));
    vec![
        once("a page: honest", with(&[]), "page: hello"),
        once("256 headers: honest", with(&[("x", "y"); 254]), "page: hello"),
        once("100 interim answers, then a page", [interim.repeat(100), with(&[])].concat(), "page: hello"),
        once(
            "a padded body: honest",
            [open(), frame(DATA, PADDED | END_STREAM, 1, padded)].concat(),
            "page: hello",
        ),
        once("a trailer: honest", [open(), frame(DATA, 0, 1, "hello"), trailer].concat(), "page: hello"),
        once("no window for requests, which have no body", [no_window, with(&[])].concat(), "page: hello"),
    ]
}

/// Frames that concern the whole connection.
fn connections() -> Vec<Attack> {
    let promised = [field(":method", "GET"), field(":scheme", "https"), field(":path", "/")].concat();
    let promised = [field(":authority", "127.0.0.1"), promised].concat();
    vec![
        once("HTTP/1.1", "HTTP/1.1 200 OK\r\n\r\nhello", "connect: frame with invalid size"),
        once(
            "a frame larger than the maximum",
            frame(DATA, END_STREAM, 1, [0; 16385]),
            "connect: frame with invalid size",
        ),
        once(
            "a frame of 16 MB and no known type",
            [255, 255, 255, 99, 0, 0, 0, 0, 0],
            "connect: frame with invalid size",
        ),
        once(
            "a window beyond 31 bits",
            frame(WINDOW_UPDATE, 0, 0, number(0x7fff_ffff)),
            "connect: flow-control protocol violated",
        ),
        once("a window of streams beyond 31 bits", frame(SETTINGS, 0, 0, setting(4, u32::MAX)), MALFORMED),
        once("a window wider by nothing", frame(WINDOW_UPDATE, 0, 0, number(0)), MALFORMED),
        once("a maximum of no bytes in a frame", frame(SETTINGS, 0, 0, setting(5, 0)), MALFORMED),
        endless("the ACK of SETTINGS without end", Vec::new(), frame(SETTINGS, ACK, 0, []), MALFORMED),
        once(
            "a GOAWAY without an error, which invites another try",
            frame(GOAWAY, 0, 0, [0; 8]),
            "connect: not a result of an error",
        ),
        once(
            "a GOAWAY with an error",
            frame(GOAWAY, 0, 0, [number(0), number(11)].concat()),
            "connect: excessive load",
        ),
        once(
            "a push",
            frame(PUSH_PROMISE, END_HEADERS, 1, [&number(2), promised.as_slice()].concat()),
            MALFORMED,
        ),
    ]
}

/// Frames for streams that are not open, or that the server ends.
fn streams() -> Vec<Attack> {
    let answer = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, status("200"));
    vec![
        once(
            "a stream refused, which invites another try",
            frame(RST_STREAM, 0, 1, number(7)),
            "connect: refused stream",
        ),
        once(
            "100,000 resets of the stream",
            frame(RST_STREAM, 0, 1, number(8)).repeat(100_000),
            "connect: stream no longer needed",
        ),
        endless(
            "resets of a stream that nobody opened",
            Vec::new(),
            frame(RST_STREAM, 0, 3, number(8)),
            MALFORMED,
        ),
        once("an answer on stream 0", answer(0), MALFORMED),
        once("an answer on a stream that nobody opened", answer(3), MALFORMED),
        once("an answer on a stream of the server's", answer(2), MALFORMED),
        once("a body on stream 0", frame(DATA, 0, 0, "hello"), MALFORMED),
        once("a body without a head", frame(DATA, END_STREAM, 1, "hello"), MALFORMED),
    ]
}

fn heads() -> Vec<Attack> {
    let more = |fields: Vec<u8>| frame(CONTINUATION, 0, 1, fields);
    let end = frame(CONTINUATION, END_HEADERS | END_STREAM, 1, []);
    let many = field("x", "y").repeat(1000);
    let long = field("x", &"y".repeat(16_000));
    let bomb = [status("200"), kept("x", &"y".repeat(4000)), vec![NEWEST; 12_000]].concat();
    // The name `x`, and a value of 256 MB.
    let endless_value = [status("200"), vec![0, 1, b'x', 127, 0x81, 0xff, 0xff, 0x7f]].concat();
    vec![
        endless("empty CONTINUATION without end", begun(), more(vec![]), TOO_MANY_CONTINUATIONS),
        endless("headers without end", begun(), more(many.clone()), TOO_MANY_CONTINUATIONS),
        endless(
            "a header without end",
            frame(HEADERS, 0, 1, endless_value),
            more(vec![b'y'; 16_384]),
            TOO_MANY_CONTINUATIONS,
        ),
        once(
            "100,000 headers",
            [begun(), more(many.clone()).repeat(100), end.clone()].concat(),
            TOO_MANY_CONTINUATIONS,
        ),
        once(
            "headers of 1 MB",
            [begun(), more(long).repeat(64), end.clone()].concat(),
            TOO_MANY_CONTINUATIONS,
        ),
        once(
            "headers of 100 KB, as HTTP/2 counts them",
            [begun(), more(many.repeat(3)), end].concat(),
            MALFORMED,
        ),
        once(
            "a header of 4 KB from the table, 12,000 times",
            only(bomb),
            "connect: header_list_way_too_large",
        ),
        once(
            "the table's size, 16,000 times",
            only([vec![0x20; 16_000], status("404")].concat()),
            "http: 404",
        ),
        once(
            "a table larger than allowed",
            only([vec![0x3f, 0xe1, 0xff, 0x07], status("200")].concat()),
            MALFORMED,
        ),
        once("a header that the table does not have", only([0xff, 0xff, 0x7f]), MALFORMED),
        once("a number without end", only([0xff; 16_000]), MALFORMED),
        once("another frame within a head", [begun(), frame(PING, 0, 0, [0; 8])].concat(), MALFORMED),
        once("no status", only(field("x", "y")), MALFORMED),
        once("two statuses", only(status("200").repeat(2)), MALFORMED),
        once("status 000", only(status("000")), MALFORMED),
        once("an interim answer that is all", only(status("103")), MALFORMED),
        once("a header in capitals", with(&[("X", "y")]), MALFORMED),
        once("a header with a line break", with(&[("x", "a\r\ny: b")]), MALFORMED),
        once("a header of HTTP/1.1's", with(&[("transfer-encoding", "chunked")]), MALFORMED),
        once("two lengths", with(&[("content-length", "5"), ("content-length", "6")]), MALFORMED),
        once(
            "a length, and no body",
            only([status("200"), field("content-length", "5")].concat()),
            MALFORMED,
        ),
    ]
}

fn bodies() -> Vec<Attack> {
    let data = |payload: &[u8]| frame(DATA, 0, 1, payload);
    let trailer = || field("x", "y");
    vec![
        once("a body of 1 MB", [open(), data(&[b'x'; 16_384]).repeat(64)].concat(), TOO_LARGE),
        once("a length of an exabyte", with(&[("content-length", "1000000000000000000")]), TOO_LARGE),
        once("a body shorter than its length", with(&[("content-length", "10")]), MALFORMED_BODY),
        once("a body longer than its length", with(&[("content-length", "2")]), MALFORMED_BODY),
        endless("empty DATA without end", open(), data(&[]), TOO_MANY_DATA_FRAMES),
        endless(
            "DATA of nothing but padding without end",
            open(),
            frame(DATA, PADDED, 1, [255; 256]),
            TOO_MANY_DATA_FRAMES,
        ),
        once(
            "padding longer than its frame",
            [open(), frame(DATA, PADDED, 1, [255, 0])].concat(),
            MALFORMED_BODY,
        ),
        once(
            "trailers that are not the end",
            [open(), data(b"hello"), frame(HEADERS, END_HEADERS, 1, trailer())].concat(),
            MALFORMED_BODY,
        ),
        endless(
            "trailers without end",
            [open(), data(b"hello"), frame(HEADERS, END_STREAM, 1, trailer())].concat(),
            frame(CONTINUATION, 0, 1, trailer().repeat(1000)),
            "body: too_many_continuations",
        ),
        once(
            "a reset within a body",
            [open(), data(b"hello"), frame(RST_STREAM, 0, 1, number(8))].concat(),
            "body: stream no longer needed",
        ),
    ]
}

/// Frames that HTTP/2 allows, sent without end.
pub(super) fn floods() -> Vec<Attack> {
    let flood = |name, again: Vec<u8>| endless(name, Vec::new(), again, FLOOD);
    let interim = [field(":status", "103"), field("x", &"y".repeat(16_000))].concat();
    vec![
        flood("PING without end", frame(PING, 0, 0, [0; 8])),
        flood("the ACK of PING without end", frame(PING, ACK, 0, [0; 8])),
        flood("SETTINGS without end", frame(SETTINGS, 0, 0, [])),
        flood("SETTINGS of 2,730 settings without end", frame(SETTINGS, 0, 0, setting(3, 1).repeat(2730))),
        flood("PRIORITY without end", frame(PRIORITY, 0, 3, [0, 0, 0, 0, 1])),
        flood("windows wider by a byte without end", frame(WINDOW_UPDATE, 0, 0, number(1))),
        flood("GOAWAY without end", frame(GOAWAY, 0, 0, [number(1), number(0)].concat())),
        flood(
            "GOAWAY with 16 KB of reasons without end",
            frame(GOAWAY, 0, 0, [&[0, 0, 0, 1][..], &[0; 16_000]].concat()),
        ),
        flood("interim answers without end", frame(HEADERS, END_HEADERS, 1, field(":status", "103"))),
        flood("interim answers of 16 KB without end", frame(HEADERS, END_HEADERS, 1, interim)),
        flood("frames of no known type without end", frame(99, 0, 0, [])),
    ]
}

/// Responses that stop before they are complete.
pub(super) fn waits() -> Vec<Attack> {
    let deaf = |name, again: Vec<u8>| {
        let script = Script { start: Vec::new(), again: again.repeat(1000), reads: false };
        Attack { name, script, gets: WAIT }
    };
    vec![
        once("silence", [], WAIT),
        once("a head without its end", begun(), WAIT),
        once("a body without its end", [open(), frame(DATA, 0, 1, "hello")].concat(), WAIT),
        once("a switch to another protocol", frame(HEADERS, END_HEADERS, 1, status("101")), WAIT),
        once("a window of the stream beyond 31 bits", frame(WINDOW_UPDATE, 0, 1, number(0x7fff_ffff)), WAIT),
        once(
            "a GOAWAY that lets the request be answered, and no answer",
            frame(GOAWAY, 0, 0, [number(1), number(0)].concat()),
            WAIT,
        ),
        deaf("PING without end, and nobody reads the answers", frame(PING, 0, 0, [0; 8])),
        deaf("SETTINGS without end, and nobody reads the answers", frame(SETTINGS, 0, 0, [])),
    ]
}
