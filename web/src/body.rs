//! Reads a body: whole, in parts, or its start.

use bytes::{Bytes, BytesMut};
use futures::stream;
use reqwest::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use reqwest::{Response, Version};
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio_util::io::StreamReader;
use trawl_common::frontier::outcome::{Class, Failure};

use super::coding::{self, Reader};
use super::failure;
use super::limited::TooLarge;
use super::memory::{MemoryBudget, MemoryShare};

/// Size of an unpacked part in bytes.
const PART: usize = 32 * 1024;

/// Number of bytes allocated for a body before it arrives. A larger body takes a share of the memory budget of all
/// bodies.
const SMALL: u64 = 256 * 1024;

/// The limit in bytes of a body whose reader has limits of its own. Nested codings could otherwise keep it busy without
/// any output.
const MAX_STREAM: u64 = 2 << 30;

/// The limit of a body, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// `fetch.max_body`.
    Page(u64),
    /// `max_size` of a `[[download]]`.
    File(u64),
    /// [`MAX_STREAM`]: its reader has limits of its own.
    Stream,
}

impl Limit {
    fn bytes(self) -> u64 {
        match self {
            Self::Page(bytes) | Self::File(bytes) => bytes,
            Self::Stream => MAX_STREAM,
        }
    }

    /// Returns the failure of a larger body.
    pub(super) fn exceeded(self) -> Failure {
        let bytes = self.bytes();
        let setting = match self {
            Self::Page(_) => " (`fetch.max_body`)",
            Self::File(_) => " (`max_size` of its [[download]])",
            Self::Stream => "",
        };
        Failure::new(Class::Size, format_args!("larger than {bytes} bytes{setting}"))
    }
}

/// A body that is being read, up to a limit on the bytes as sent, unpacked, and in between.
pub(super) struct Body {
    source: Source,
    limit: Limit,
}

enum Source {
    Plain(Plain),
    Packed(Reader),
}

impl Body {
    /// Opens the body of `response`, with its content codings removed.
    pub(super) async fn open(response: Response, limit: Limit) -> Result<Self, Unread> {
        let codings = coding::codings(response.headers())?;
        let length = response.content_length();
        let plain = Plain { ends_with_connection: ends_with_connection(&response), response, read: 0 };
        if codings.is_empty() {
            return Ok(Self { source: Source::Plain(plain), limit });
        }
        let parts = stream::try_unfold(plain, async |mut plain| {
            let part = plain.next().await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(part.map(|part| (part, plain)))
        });
        let mut packed = StreamReader::new(Box::pin(parts));
        let fault = |error| fault(error, limit);
        // An empty body is empty in any coding, although no coding defines that.
        let is_empty = length == Some(0) || packed.fill_buf().await.map_err(fault)?.is_empty();
        let codings = if is_empty { &[] } else { codings.as_slice() };
        let reader = coding::unpacked(packed, codings, limit.bytes()).await.map_err(fault)?;
        Ok(Self { source: Source::Packed(reader), limit })
    }

    /// Returns the next part; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Unread> {
        match &mut self.source {
            Source::Plain(plain) => {
                let chunk = plain.next().await.map_err(|error| Unread::new(&error))?;
                if plain.read > self.limit.bytes() { Err(self.limit.exceeded().into()) } else { Ok(chunk) }
            }
            Source::Packed(reader) => {
                let mut part = BytesMut::with_capacity(PART);
                let read = reader.read_buf(&mut part).await.map_err(|error| fault(error, self.limit))?;
                Ok(if read == 0 { None } else { Some(part.freeze()) })
            }
        }
    }

    /// Reads the whole body. A body that arrives in one piece is not copied, one that is declared too large is not
    /// read, and one that is not small waits for its share of `memory`.
    pub(super) async fn read(mut self, memory: &MemoryBudget) -> Result<Bytes, Unread> {
        let limit = self.limit;
        let most = limit.bytes();
        let announced = match &mut self.source {
            Source::Packed(reader) => {
                let mut whole = Whole::new(PART, memory, most);
                while reader.read_buf(&mut whole.bytes).await.map_err(|error| fault(error, limit))? > 0 {
                    whole.has_grown().await;
                }
                return Ok(whole.finish());
            }
            Source::Plain(plain) => plain.response.content_length(),
        };
        if announced.is_some_and(|length| length > most) {
            return Err(limit.exceeded().into());
        }
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let Some(mut next) = self.next().await? else { return Ok(first) };
        let length = announced.unwrap_or(most);
        let mut whole = Whole::new(announced.map_or(0, |length| length.min(SMALL) as usize), memory, length);
        whole.bytes.extend_from_slice(&first);
        loop {
            whole.bytes.extend_from_slice(&next);
            whole.has_grown().await;
            match self.next().await? {
                Some(part) => next = part,
                None => return Ok(whole.finish()),
            }
        }
    }

    /// Reads the first `most` bytes; the rest is not read.
    pub(super) async fn read_start(mut self, most: usize) -> Result<Bytes, Unread> {
        let mut start = BytesMut::new();
        while start.len() < most {
            let Some(part) = self.next().await? else { break };
            start.extend_from_slice(&part[..part.len().min(most - start.len())]);
        }
        Ok(start.freeze())
    }
}

/// The failure of a body that could not be read.
pub(super) struct Unread {
    pub(super) failure: Failure,
    /// Whether its chunks break the rules, so that only browsers may read it.
    pub(super) is_malformed: bool,
}

impl Unread {
    fn new(error: &reqwest::Error) -> Self {
        Self { failure: failure::broken_body(error), is_malformed: failure::has_malformed_chunks(error) }
    }
}

impl From<Failure> for Unread {
    fn from(failure: Failure) -> Self {
        Self { failure, is_malformed: false }
    }
}

/// A body as sent.
struct Plain {
    response: Response,
    ends_with_connection: bool,
    /// Number of bytes read so far.
    read: u64,
}

impl Plain {
    /// Returns the next part; `None` at the end. Some bodies end only with their connection, and servers omit TLS's
    /// closing message: browsers accept these.
    async fn next(&mut self) -> reqwest::Result<Option<Bytes>> {
        match self.response.chunk().await {
            Err(error) if self.ends_with_connection && failure::is_end_without_notice(&error) => Ok(None),
            chunk => {
                let chunk = chunk?;
                self.read += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
                Ok(chunk)
            }
        }
    }
}

/// Whether a body goes on until its connection ends (RFC 9112 6.3).
fn ends_with_connection(response: &Response) -> bool {
    let says = |name| response.headers().contains_key(name);
    response.version() <= Version::HTTP_11 && !says(CONTENT_LENGTH) && !says(TRANSFER_ENCODING)
}

/// A body that grows while it is read.
struct Whole<'a> {
    bytes: BytesMut,
    memory: &'a MemoryBudget,
    /// Maximum size in bytes.
    most: u64,
    share: Option<MemoryShare>,
}

impl<'a> Whole<'a> {
    fn new(capacity: usize, memory: &'a MemoryBudget, most: u64) -> Self {
        Self { bytes: BytesMut::with_capacity(capacity), memory, most, share: None }
    }

    /// Takes its share of the memory budget once it is no longer small. It takes all that it may need at once, because
    /// two bodies that take one part after the other could wait for each other.
    async fn has_grown(&mut self) {
        if self.share.is_none() && self.bytes.len() as u64 > SMALL {
            self.share = Some(self.memory.take(self.most).await);
        }
    }

    fn finish(self) -> Bytes {
        match self.share {
            Some(share) => share.hold(self.bytes.into()),
            None => self.bytes.freeze(),
        }
    }
}

/// Classifies an error while unpacking: it comes from the network, from the limit, or from a decoder.
fn fault(error: std::io::Error, limit: Limit) -> Unread {
    let cause = error.get_ref();
    if cause.is_some_and(|cause| cause.is::<TooLarge>()) {
        return limit.exceeded().into();
    }
    match cause.and_then(|cause| cause.downcast_ref()) {
        Some(cause) => Unread::new(cause),
        None => Failure::new(Class::Body, format_args!("broken content coding: {error}")).into(),
    }
}
