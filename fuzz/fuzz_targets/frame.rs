//! Frames with a message of any publisher: passed through the screen, and then through the client library's decoder.
//!
//! The input is used twice: as the entries of a message's headers, and as a stream of frames.
#![no_main]

use amq_protocol::frame::parsing::parse_frame;
use libfuzzer_sys::fuzz_target;
use trawl_backends::rabbitmq::screen::Screen;

fuzz_target!(|input: &[u8]| {
    let arrived = headers(input);
    let out = screened(&arrived, 61);
    assert_eq!(out.len(), arrived.len(), "nothing is held back of a whole frame");
    // One byte is too short for headers, and the broker sends none.
    if input.len() != 1 {
        let (rest, _) = parse_frame(&out[..]).expect("headers that anyone published are read");
        assert!(rest.is_empty());
    }
    assert_eq!(screened(&arrived, 1), out, "however it arrives");

    let out = screened(input, 7);
    assert!(out.len() <= input.len());
    let mut rest = &out[..];
    while let Ok((after, _)) = parse_frame(rest) {
        rest = after;
    }
});

/// Properties of a message with nothing but headers.
fn headers(entries: &[u8]) -> Vec<u8> {
    let length = (entries.len() as u32).to_be_bytes();
    let payload = [&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0], &length[..], entries].concat();
    [&[2, 0, 1], &(payload.len() as u32).to_be_bytes()[..], &payload, &[0xce]].concat()
}

fn screened(arrived: &[u8], pieces: usize) -> Vec<u8> {
    let (mut screen, mut out, mut into) = (Screen::default(), Vec::new(), [0; 512]);
    for piece in arrived.chunks(pieces) {
        screen.put(piece);
        loop {
            match screen.take(&mut into) {
                0 => break,
                count => out.extend_from_slice(&into[..count]),
            }
        }
    }
    out
}
