//! Bodies that are longer than they say, or larger than they look.

use std::io::Cursor;

use async_compression::tokio::bufread::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use async_compression::zstd::CParameter;
use async_compression::{Level, brotli};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::server::{Script, head};
use crate::{LIMIT, attack, settings, try_all};

const TOO_LARGE: &str = "size: larger than 65536 bytes (`fetch.max_body`)";

#[tokio::test]
async fn a_body_is_as_long_as_it_says_and_no_longer_than_allowed() {
    let page = |name, headers: &str, body: &str, gets| attack(name, Script::page(headers, body), gets);
    let chunked =
        |name, body: &str, gets| attack(name, Script::page("transfer-encoding: chunked", body), gets);
    let endless = |name, headers: &str, start: &str, again: &str, gets| {
        let start = head(200, headers) + start;
        attack(name, Script::endless(start, again.repeat(64 * 1024 / again.len())), gets)
    };
    let attacks = vec![
        page(
            "a body shorter than its length",
            "content-length: 10",
            "short",
            "body: end of file before message length reached",
        ),
        page("a body longer than its length", "content-length: 5", "hello, world", "page: hello"),
        page(
            "two lengths",
            "content-length: 5\ncontent-length: 6",
            "hello!",
            "connect: invalid content-length parsed",
        ),
        page("a negative length", "content-length: -1", "hello", "page: hello"),
        page("a length beyond 64 bits", "content-length: 18446744073709551616", "hello", "page: hello"),
        page("a length of an exabyte", "content-length: 1000000000000000000", "hello", TOO_LARGE),
        page(
            "a length and chunks",
            "content-length: 1\ntransfer-encoding: chunked",
            "5\r\nhello\r\n0\r\n\r\n",
            "page: hello",
        ),
        endless("a body without end", "", "", "x", TOO_LARGE),
        endless("chunks without end", "transfer-encoding: chunked", "", "1\r\nx\r\n", TOO_LARGE),
        endless(
            "a chunk's extension without end",
            "transfer-encoding: chunked",
            "5;",
            "x",
            "body: too long a head",
        ),
        endless(
            "trailers without end",
            "transfer-encoding: chunked",
            "5\r\nhello\r\n0\r\n",
            "x: y\r\n",
            "page: hello",
        ),
        endless("a chunk's size without end", "transfer-encoding: chunked", "", "1", "body: too long a head"),
        chunked("a chunk whose size is no number", "hello\r\nhello\r\n", "body: invalid size of a chunk"),
        chunked(
            "a chunk of more than 64 bits",
            "10000000000000000\r\nhello\r\n",
            "body: invalid size of a chunk",
        ),
        chunked(
            "a chunk longer than its size",
            "1\r\nhello\r\n0\r\n\r\n",
            "body: a chunk is longer than its size",
        ),
        chunked(
            "a chunk shorter than its size",
            "a\r\nhello",
            "body: end of file before message length reached",
        ),
        chunked("chunks without a last one", "5\r\nhello\r\n", "body: unexpected EOF"),
    ];
    try_all("Bodies", &settings(), attacks).await;
}

async fn pack(encoder: impl AsyncRead) -> Vec<u8> {
    let mut packed = Vec::new();
    std::pin::pin!(encoder).read_to_end(&mut packed).await.unwrap();
    packed
}

async fn gzip(data: &[u8]) -> Vec<u8> {
    pack(GzipEncoder::new(data)).await
}

#[tokio::test]
async fn a_packed_body_is_bounded_as_it_is_sent_unpacked_and_in_between() {
    let zeros = vec![0; 10 << 20];
    let hello = b"hello".as_slice();
    let coded = |name, coding: &str, body: Vec<u8>, gets| {
        attack(name, Script::page(&format!("content-encoding: {coding}"), body), gets)
    };
    let bomb = |name, coding, body: Vec<u8>| {
        assert!(body.len() < LIMIT, "{name}: {} bytes", body.len());
        coded(name, coding, body, TOO_LARGE)
    };
    let twice = gzip(&gzip(hello).await).await;
    let wide = pack(ZstdEncoder::with_quality_and_params(
        Cursor::new(&zeros),
        Level::Default,
        &[CParameter::window_log(27)],
    ));
    let large_window = brotli::EncoderParams::default().quality(Level::Fastest);
    let nothing = gzip(b"").await;
    let again = |bytes: &[u8]| bytes.repeat(64 * 1024 / bytes.len());
    let endless = |name, coding: &str, start: &[u8], bytes: &[u8], gets| {
        let head = head(200, &format!("content-encoding: {coding}"));
        attack(name, Script::endless([head.as_bytes(), start].concat(), again(bytes)), gets)
    };
    let attacks = vec![
        coded("zlib under `deflate`: honest", "deflate", pack(ZlibEncoder::new(hello)).await, "page: hello"),
        coded(
            "bare deflate under `deflate`: honest",
            "deflate",
            pack(DeflateEncoder::new(hello)).await,
            "page: hello",
        ),
        coded("gzip in gzip: honest", "gzip, gzip", twice.clone(), "page: hello"),
        coded("gzip in two members: honest", "gzip", gzip(hello).await.repeat(2), "page: hellohello"),
        coded("nothing under `gzip`: honest", "gzip", Vec::new(), "page: "),
        bomb("a bomb in gzip", "gzip", gzip(&zeros).await),
        bomb("a bomb in zlib", "deflate", pack(ZlibEncoder::new(zeros.as_slice())).await),
        bomb("a bomb in bare deflate", "deflate", pack(DeflateEncoder::new(zeros.as_slice())).await),
        bomb(
            "a bomb in brotli",
            "br",
            pack(BrotliEncoder::with_params(zeros.as_slice(), large_window)).await,
        ),
        bomb("a bomb in zstd", "zstd", pack(ZstdEncoder::new(zeros.as_slice())).await),
        bomb("a bomb in gzip in gzip", "gzip, gzip", gzip(&gzip(&zeros).await).await),
        bomb("a bomb in zstd in brotli in gzip", "zstd, br, gzip", {
            let zstd = pack(ZstdEncoder::new(zeros.as_slice())).await;
            gzip(&pack(BrotliEncoder::new(zstd.as_slice())).await).await
        }),
        bomb(
            "10 MB of empty members in gzip: a bomb that comes to nothing",
            "gzip, gzip",
            gzip(&nothing.repeat((10 << 20) / nothing.len())).await,
        ),
        coded("a zstd window of 128 MB", "zstd", wide.await, "body: broken content coding"),
        coded(
            "four codings",
            "gzip, gzip, gzip, gzip",
            gzip(&gzip(&twice).await).await,
            "body: more than 3 content codings",
        ),
        coded(
            "10,000 codings",
            &"gzip,".repeat(10_000),
            gzip(hello).await,
            "body: more than 3 content codings",
        ),
        coded("an unknown coding", "rot13", hello.to_vec(), "page: hello"),
        coded("what is no gzip", "gzip", hello.to_vec(), "page: hello"),
        coded("what begins like gzip and is none", "gzip", b"\x1fx".to_vec(), "body: broken content coding"),
        coded(
            "a gzip with zeros after it",
            "gzip",
            [gzip(hello).await, vec![0; 100]].concat(),
            "page: hello",
        ),
        coded(
            "a gzip without its trailer",
            "gzip",
            {
                let bytes = gzip(hello).await;
                bytes[..bytes.len() - 8].to_vec()
            },
            "page: hello",
        ),
        coded("what is no deflate", "deflate", b"\xff\xff\xff".to_vec(), "body: broken content coding"),
        coded("what is no brotli", "br", b"\xff\xff\xff".to_vec(), "body: broken content coding"),
        coded("what is no zstd", "zstd", hello.to_vec(), "body: broken content coding"),
        coded("half of a gzip", "gzip", gzip(&[7; 1000]).await[..15].to_vec(), "body: broken content coding"),
        coded(
            "a gzip whose checksum is wrong",
            "gzip",
            {
                let mut bytes = gzip(hello).await;
                let at = bytes.len() - 8;
                bytes[at] ^= 1;
                bytes
            },
            "page: hello",
        ),
        coded(
            "a large window in brotli",
            "br",
            b"\x11\x1e\x00\x00\x00".to_vec(),
            "body: broken content coding",
        ),
        endless("empty members of gzip without end", "gzip", b"", &nothing, TOO_LARGE),
        endless("empty blocks of deflate without end", "deflate", b"", b"\x00\x00\x00\xff\xff", TOO_LARGE),
        endless("a gzip header without end", "gzip", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03", b"x", TOO_LARGE),
    ];
    try_all("Content codings", &settings(), attacks).await;
}
