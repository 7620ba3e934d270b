//! Reading the output of programs up to a limit.

use std::collections::VecDeque;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};

/// Number of bytes that are kept of the end of standard error.
const TAIL_BYTES: usize = 16 * 1024;

/// The output exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flood;

/// Reads all output, up to `most` bytes. A read error counts as the end.
pub(crate) async fn all(from: impl AsyncRead + Unpin, most: usize) -> Result<Vec<u8>, Flood> {
    let mut output = Vec::new();
    let _ = from.take(most as u64 + 1).read_to_end(&mut output).await;
    if output.len() > most { Err(Flood) } else { Ok(output) }
}

/// Reads all output, and returns the last [`TAIL_BYTES`] bytes. `line`, if there is one, is given each line without its
/// end; one of more than [`TAIL_BYTES`] bytes in pieces.
pub(crate) async fn tail(mut from: impl AsyncRead + Unpin, mut line: Option<impl FnMut(&[u8])>) -> Vec<u8> {
    let (mut tail, mut buffer) = (VecDeque::with_capacity(2 * TAIL_BYTES), vec![0; TAIL_BYTES]);
    let mut begun = Vec::new();
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let new = &buffer[..count];
        let beyond = (tail.len() + count).saturating_sub(TAIL_BYTES).min(tail.len());
        tail.drain(..beyond);
        tail.extend(new);
        // A flood is not divided into lines that nobody reads.
        let Some(line) = &mut line else { continue };
        for piece in new.split_inclusive(|byte| *byte == b'\n') {
            begun.extend_from_slice(piece.strip_suffix(b"\n").unwrap_or(piece));
            if piece.ends_with(b"\n") || begun.len() > TAIL_BYTES {
                line(&begun);
                begun.clear();
            }
        }
    }
    if let Some(line) = &mut line
        && !begun.is_empty()
    {
        line(&begun);
    }
    tail.into()
}

/// Reads the next line, without its end, into `line`. Returns `false` if there is none; the last line may lack its end.
/// A line of more than `most` bytes is an error.
pub(crate) async fn line(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    most: usize,
) -> Result<bool, Flood> {
    line.clear();
    loop {
        let Ok(available) = from.fill_buf().await else { return Ok(!line.is_empty()) };
        if available.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let count = end.unwrap_or(available.len());
        if line.len() + count > most {
            return Err(Flood);
        }
        line.extend_from_slice(&available[..count]);
        from.consume(count + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_up_to_their_bound() {
        let mut from = &b"one\n\ntwo"[..];
        let mut found = Vec::new();
        let mut next = Vec::new();
        while line(&mut from, &mut next, 3).await.unwrap() {
            found.push(String::from_utf8(next.clone()).unwrap());
        }
        assert_eq!(found, ["one", "", "two"]);
        assert_eq!(line(&mut &b"four\n"[..], &mut next, 3).await, Err(Flood));
        assert_eq!(all(&b"four"[..], 3).await, Err(Flood));
        assert_eq!(all(&b"two"[..], 3).await.unwrap(), b"two");
    }

    #[tokio::test]
    async fn of_a_flood_the_end_is_kept_and_each_line_is_shown() {
        let flood: Vec<u8> = (0..100_000u32).map(|number| (number % 251) as u8).collect();
        let mut lines = Vec::new();
        assert_eq!(
            tail(&flood[..], Some(|line: &[u8]| lines.push(line.to_vec()))).await,
            flood[flood.len() - TAIL_BYTES..]
        );
        assert_eq!(lines.join(&b'\n'), flood);
        lines.clear();
        assert_eq!(
            tail(&b"short\n\nand no end"[..], Some(|line: &[u8]| lines.push(line.to_vec()))).await,
            b"short\n\nand no end"
        );
        assert_eq!(lines, [&b"short"[..], b"", b"and no end"]);
    }
}
