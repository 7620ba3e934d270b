//! Gzip (RFC 1952) as servers send it: what is no gzip is plain, what follows a member and is none is ignored, and the
//! trailer may be missing or wrong. The decoders of `flate2` and `async-compression` fail at each of these.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_compression::tokio::bufread::DeflateDecoder;
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};

use super::limited::is_from_below;

/// The size of the checksum and the length at the end of a member. Browsers look at neither.
const TRAILER: usize = 8;

/// Reads the content of gzip data.
pub(super) struct Gzip<R> {
    state: State<R>,
    /// Whether this is not the first member.
    is_later: bool,
    /// Whether the present member has given anything.
    has_given: bool,
}

enum State<R> {
    /// The bytes of the next member's header so far.
    Header(R, Header),
    Body(DeflateDecoder<R>),
    /// The number of bytes that are left of the trailer.
    Trailer(R, usize),
    Plain(R),
    End,
}

impl<R: AsyncBufRead + Unpin> Gzip<R> {
    pub(super) fn new(packed: R) -> Self {
        Self { state: State::Header(packed, Header::default()), is_later: false, has_given: false }
    }

    /// Reads the header of a member. Data that does not begin with one is returned unchanged, or ignored after a
    /// member.
    fn poll_header(mut packed: R, mut header: Header, cx: &mut Context<'_>) -> HeaderPoll<R> {
        loop {
            let bytes = match Pin::new(&mut packed).poll_fill_buf(cx) {
                Poll::Pending => return HeaderPoll::Pending(State::Header(packed, header)),
                Poll::Ready(Err(error)) => return HeaderPoll::Failed(error),
                Poll::Ready(Ok(bytes)) => bytes,
            };
            if header.is_empty() && bytes.first() != Some(&0x1f) {
                return HeaderPoll::NoMember(packed);
            }
            if bytes.is_empty() {
                return HeaderPoll::Failed(io::ErrorKind::UnexpectedEof.into());
            }
            let (read, outcome) = header.read(bytes);
            Pin::new(&mut packed).consume(read);
            match outcome {
                Ok(true) => return HeaderPoll::Whole(packed),
                Ok(false) => {}
                Err(error) => return HeaderPoll::Failed(error),
            }
        }
    }
}

enum HeaderPoll<R> {
    Pending(State<R>),
    Whole(R),
    NoMember(R),
    Failed(io::Error),
}

impl<R: AsyncBufRead + Unpin> AsyncRead for Gzip<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match std::mem::replace(&mut this.state, State::End) {
                State::Header(packed, header) => match Self::poll_header(packed, header, cx) {
                    HeaderPoll::Pending(state) => {
                        this.state = state;
                        return Poll::Pending;
                    }
                    HeaderPoll::Whole(packed) => {
                        this.has_given = false;
                        this.state = State::Body(DeflateDecoder::new(packed));
                    }
                    HeaderPoll::NoMember(packed) if !this.is_later => this.state = State::Plain(packed),
                    HeaderPoll::Failed(error) if !this.is_later || is_from_below(&error) => {
                        return Poll::Ready(Err(error));
                    }
                    HeaderPoll::NoMember(_) | HeaderPoll::Failed(_) => return Poll::Ready(Ok(())),
                },
                State::Body(mut body) => {
                    let before = buf.filled().len();
                    let read = Pin::new(&mut body).poll_read(cx, buf);
                    let is_empty = buf.filled().len() == before;
                    this.has_given |= !is_empty;
                    let is_junk =
                        |error: &io::Error| this.is_later && !this.has_given && !is_from_below(error);
                    if matches!(&read, Poll::Ready(Err(error)) if is_junk(error)) {
                        return Poll::Ready(Ok(()));
                    }
                    let is_over = matches!(read, Poll::Ready(Ok(()))) && is_empty;
                    this.state =
                        if is_over { State::Trailer(body.into_inner(), TRAILER) } else { State::Body(body) };
                    if !is_over {
                        return read;
                    }
                }
                State::Trailer(mut packed, left) => {
                    let Poll::Ready(bytes) = Pin::new(&mut packed).poll_fill_buf(cx) else {
                        this.state = State::Trailer(packed, left);
                        return Poll::Pending;
                    };
                    let bytes = bytes?;
                    if bytes.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    let read = bytes.len().min(left);
                    Pin::new(&mut packed).consume(read);
                    if read < left {
                        this.state = State::Trailer(packed, left - read);
                        continue;
                    }
                    this.is_later = true;
                    this.state = State::Header(packed, Header::default());
                }
                State::Plain(mut packed) => {
                    let read = Pin::new(&mut packed).poll_read(cx, buf);
                    this.state = State::Plain(packed);
                    return read;
                }
                State::End => return Poll::Ready(Ok(())),
            }
        }
    }
}

/// The header of a member that is being read.
#[derive(Default)]
struct Header {
    /// The fixed-length part, and the length of the extra field after it.
    start: Vec<u8>,
    part: Part,
}

#[derive(Clone, Copy, Default)]
enum Part {
    #[default]
    Start,
    ExtraLength(usize),
    Extra(usize),
    Name,
    Comment,
    Checksum(usize),
    Whole,
}

const FIXED: usize = 10;
const CHECKSUM: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;

impl Header {
    fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Reads bytes of the header. Returns how many, and whether the header is complete.
    fn read(&mut self, bytes: &[u8]) -> (usize, io::Result<bool>) {
        for (at, byte) in bytes.iter().enumerate() {
            if let Err(error) = self.take(*byte) {
                return (at, Err(error));
            }
            self.pass();
            if matches!(self.part, Part::Whole) {
                return (at + 1, Ok(true));
            }
        }
        (bytes.len(), Ok(false))
    }

    fn take(&mut self, byte: u8) -> io::Result<()> {
        self.part = match self.part {
            Part::Start => {
                self.start.push(byte);
                if self.start.len() <= 3 && !b"\x1f\x8b\x08".starts_with(&self.start) {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "no gzip"));
                }
                if self.start.len() < FIXED { Part::Start } else { Part::ExtraLength(2) }
            }
            Part::ExtraLength(left) => {
                self.start.push(byte);
                match left {
                    2 => Part::ExtraLength(1),
                    _ => Part::Extra(usize::from(u16::from_le_bytes([self.start[FIXED], byte]))),
                }
            }
            Part::Extra(left) => Part::Extra(left - 1),
            Part::Name if byte == 0 => Part::Comment,
            Part::Comment if byte == 0 => Part::Checksum(2),
            Part::Checksum(left) => Part::Checksum(left - 1),
            part => part,
        };
        Ok(())
    }

    /// Skips the parts that are absent.
    fn pass(&mut self) {
        let has = |flag| self.start.get(3).is_some_and(|flags| flags & flag != 0);
        loop {
            self.part = match self.part {
                Part::ExtraLength(2) if !has(EXTRA) => Part::Extra(0),
                Part::Extra(0) => Part::Name,
                Part::Name if !has(NAME) => Part::Comment,
                Part::Comment if !has(COMMENT) => Part::Checksum(2),
                Part::Checksum(2) if !has(CHECKSUM) => Part::Whole,
                Part::Checksum(0) => Part::Whole,
                _ => return,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};
    use tokio::io::{AsyncReadExt, BufReader};

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns the content of `packed`, whatever the chunks in which its bytes arrive.
    async fn read(packed: &[u8]) -> io::Result<String> {
        let mut outcomes = Vec::new();
        for capacity in [1, 7, 8192] {
            let mut text = String::new();
            let read = Gzip::new(BufReader::with_capacity(capacity, packed)).read_to_string(&mut text).await;
            outcomes.push(read.map(|_| text));
        }
        let last = outcomes.pop().unwrap();
        for other in outcomes {
            assert_eq!(other.as_ref().ok(), last.as_ref().ok());
        }
        last
    }

    #[tokio::test]
    async fn what_follows_a_member_is_another_or_ignored() {
        let one = gzip(b"one");
        for (tail, text) in [
            (&b""[..], "one"),
            (&[0; 100], "one"),
            (b"<!-- cached -->", "one"),
            (b"\x1f", "one"),
            (b"\x1f\x8b\x08\0", "one"),
            (b"\x1f\x8b\x08\0\0\0\0\0\0\0", "one"),
            (b"\x1f\x8b\x08\0\0\0\0\0\0\0\xff\xff\xff", "one"),
            (&gzip(b" two"), "one two"),
            (&[gzip(b" two"), b"\0\0".to_vec()].concat(), "one two"),
        ] {
            assert_eq!(read(&[&one, tail].concat()).await.unwrap(), text, "{tail:?}");
        }
    }

    #[tokio::test]
    async fn a_trailer_may_be_missing_or_wrong() {
        let whole = gzip(b"some text");
        for missing in 0..=TRAILER {
            assert_eq!(read(&whole[..whole.len() - missing]).await.unwrap(), "some text", "{missing}");
        }
        assert!(read(&whole[..whole.len() - TRAILER - 3]).await.is_err());
        let mut wrong = whole.clone();
        wrong[whole.len() - TRAILER] ^= 1;
        assert_eq!(read(&wrong).await.unwrap(), "some text");
    }

    #[tokio::test]
    async fn a_header_may_say_more_and_what_has_none_is_plain() {
        let builder = GzBuilder::new().filename("page.html").comment("x").extra(b"extra".to_vec());
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(b"text").unwrap();
        assert_eq!(read(&encoder.finish().unwrap()).await.unwrap(), "text");
        assert_eq!(read(b"<p>plain").await.unwrap(), "<p>plain");
        assert_eq!(read(b"").await.unwrap(), "");
        for broken in [&b"\x1f\x8b\x08"[..], b"\x1fno gzip", b"\x1f\x8b\x09\0\0\0\0\0\0\0"] {
            assert!(read(broken).await.is_err());
        }
    }
}
