//! HTTP/2 frames as bytes (RFC 9113 4.1), and header blocks that need no encoder (RFC 7541 6).

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

/// Length of a frame's head in bytes.
pub(super) const HEAD: usize = 9;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field that the other side does not put into its table.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    [vec![0], string(name), string(value)].concat()
}

/// A field that the other side puts into its table as the newest: [`NEWEST`].
pub(super) fn kept(name: &str, value: &str) -> Vec<u8> {
    [vec![0x40], string(name), string(value)].concat()
}

/// The newest field of the table.
pub(super) const NEWEST: u8 = 0x80 | 62;

/// `:status` and the type of a page.
pub(super) fn status(status: &str) -> Vec<u8> {
    [field(":status", status), field("content-type", "text/html")].concat()
}

/// A page's frames with additional fields.
pub(super) fn page(fields: &[u8], body: &str) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, 1, [&status("200"), fields].concat());
    [head, frame(DATA, END_STREAM, 1, body)].concat()
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An integer with a prefix of seven bits (RFC 7541 5.1).
    let mut length = text.len();
    if length < 127 {
        bytes.push(length as u8);
    } else {
        bytes.push(127);
        length -= 127;
        while length >= 128 {
            bytes.push((length % 128) as u8 | 128);
            length /= 128;
        }
        bytes.push(length as u8);
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
