//! Recognises requests on a connection whose content cannot be seen: the client sends something after the
//! server.
//!
//! All data that a client sends until the server sends something is a flight. In HTTP/1.1 each request is
//! one. In TLS only data records count, so the handshake is not a flight, and neither is an alert that ends
//! the connection.

/// A flight in TLS that is no longer than this, in bytes, holds no request: it ends the connection (RFC 8446
/// 6.1), or is an acknowledgement frame of HTTP/2.
const MAX_SMALL_FLIGHT: usize = 48;

/// The type of data records, which in TLS 1.3 are also used at the end of a handshake (RFC 8446 5.1, 5.2).
const DATA: u8 = 23;
/// The types of records.
const TYPES: std::ops::RangeInclusive<u8> = 20..=24;
/// The type of the first record of a TLS connection: a record of a handshake.
const HANDSHAKE: u8 = 22;
/// The length of a record's header, in bytes.
const HEAD: usize = 5;
/// The length of the record with a client's `Finished` in TLS 1.3, in bytes, by the hash of the cipher suite.
const FINISHED: [usize; 2] = [53, 69];

/// The data that a client has sent so far.
#[derive(Debug, Default)]
pub(super) struct Flights {
    content: Content,
    /// Whether the server has sent nothing since.
    is_open: bool,
    bytes: usize,
    is_counted: bool,
    has_any: bool,
}

impl Flights {
    /// Records that the server sent something.
    pub(super) fn server_sent(&mut self) {
        self.is_open = false;
    }

    /// Records that the client sent `bytes`. Returns whether they start a request, or reveal one, that is not
    /// the first one.
    pub(super) fn client_sent(&mut self, bytes: &[u8]) -> bool {
        if !self.is_open {
            (self.is_open, self.bytes, self.is_counted) = (true, 0, false);
        }
        self.bytes += self.content.data(bytes);
        let least = if let Content::Tls(_) = self.content { MAX_SMALL_FLIGHT } else { 0 };
        if self.is_counted || self.bytes <= least {
            return false;
        }
        self.is_counted = true;
        std::mem::replace(&mut self.has_any, true)
    }
}

/// The protocol of a client's data.
#[derive(Debug, Default)]
enum Content {
    /// Nothing has arrived so far.
    #[default]
    Unknown,
    Tls(Records),
    Other,
}

impl Content {
    /// Returns the number of these bytes that carry data.
    fn data(&mut self, bytes: &[u8]) -> usize {
        if let (Self::Unknown, Some(first)) = (&self, bytes.first()) {
            *self = if *first == HANDSHAKE { Self::Tls(Records::default()) } else { Self::Other };
        }
        let Self::Tls(records) = self else { return bytes.len() };
        records.data(bytes).unwrap_or_else(|| {
            *self = Self::Other;
            bytes.len()
        })
    }
}

/// The position in the records of a TLS connection.
#[derive(Debug, Default)]
struct Records {
    head: [u8; HEAD],
    /// The number of bytes of the header that have arrived.
    known: usize,
    /// The number of bytes of the record still to come.
    left: usize,
    /// Whether these are data.
    is_data: bool,
    has_data: bool,
}

impl Records {
    /// Returns the number of these bytes that are in data records; `None` if these are not records.
    fn data(&mut self, mut bytes: &[u8]) -> Option<usize> {
        let mut data = 0;
        while let Some(first) = bytes.first() {
            if self.left > 0 {
                let some = self.left.min(bytes.len());
                data += if self.is_data { some } else { 0 };
                (self.left, bytes) = (self.left - some, &bytes[some..]);
                continue;
            }
            self.head[self.known] = *first;
            (self.known, bytes) = (self.known + 1, &bytes[1..]);
            if self.known == HEAD {
                self.begin()?;
            }
        }
        Some(data)
    }

    /// Starts a record.
    fn begin(&mut self) -> Option<()> {
        let [kind, _, _, high, low] = self.head;
        if !TYPES.contains(&kind) {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        let is_data = kind == DATA;
        let is_finished = is_data && !self.has_data && FINISHED.contains(&length);
        self.has_data |= is_data;
        (self.known, self.left, self.is_data) = (0, length, is_data && !is_finished);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, length: usize) -> Vec<u8> {
        let length_bytes = u16::try_from(length).unwrap().to_be_bytes();
        [&[kind, 3, 3][..], &length_bytes, &vec![0; length]].concat()
    }

    /// Returns whether each flight is a further request; the server sends something after each.
    fn further(flights: &[Vec<u8>]) -> Vec<bool> {
        let mut all = Flights::default();
        let sent = |flight: &Vec<u8>| {
            // Whatever the chunks in which they arrive.
            let is_further = flight.chunks(7).map(|bytes| all.client_sent(bytes)).filter(|further| *further);
            let count = is_further.count();
            all.server_sent();
            assert!(count <= 1);
            count == 1
        };
        flights.iter().map(sent).collect()
    }

    #[test]
    fn a_handshake_is_no_request_and_the_first_one_waits_for_no_further_slot() {
        let request = || record(DATA, 120);
        let tls13 =
            [record(HANDSHAKE, 300), [record(20, 1), record(DATA, 53), request()].concat(), request()];
        assert_eq!(further(&tls13), [false, false, true]);
        // The server's tickets arrive before the request is sent.
        let apart = [record(HANDSHAKE, 300), record(DATA, 69), request(), request()];
        assert_eq!(further(&apart), [false, false, false, true]);
        let tls12 =
            [record(HANDSHAKE, 300), [record(HANDSHAKE, 66), record(20, 1)].concat(), request(), request()];
        assert_eq!(further(&tls12), [false, false, false, true]);
    }

    #[test]
    fn a_request_in_many_parts_is_one_until_the_server_speaks() {
        let mut flights = Flights::default();
        let part = record(DATA, 2_000);
        assert!(!flights.client_sent(&record(HANDSHAKE, 300)));
        flights.server_sent();
        assert!(!flights.client_sent(&part));
        flights.server_sent();
        let further: Vec<bool> = (0..3).map(|_| flights.client_sent(&part)).collect();
        assert_eq!(further, [true, false, false]);
    }

    #[test]
    fn what_says_that_the_connection_ends_is_no_request() {
        let flights = [record(HANDSHAKE, 300), record(DATA, 120), record(DATA, 19), record(21, 26)];
        assert_eq!(further(&flights), [false; 4]);
    }

    #[test]
    fn what_is_not_tls_is_a_request_whatever_it_says() {
        let flights = [b"GET / HTTP/1.1\r\n\r\n".to_vec(), b"x".to_vec(), b"x".to_vec()];
        assert_eq!(further(&flights), [false, true, true]);
        // It starts like TLS, but is something else.
        let broken = [record(HANDSHAKE, 10), vec![99; 20], vec![99; 20]];
        assert_eq!(further(&broken), [false, false, true]);
    }
}
