//! Responses that break rules of HTTP, and that browsers accept nevertheless.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::http2::{Identity, trusting};
use super::*;

/// Starts a server that sends these bytes to every client and closes. Returns its URL.
async fn say(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.read(&mut [0; 4096]).await;
            let _ = connection.write_all(&answer).await;
        }
    });
    url
}

#[tokio::test]
async fn a_page_is_read_however_odd_its_head_is() {
    let page = "<p>right";
    let with = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 8\r\n\r\n{page}");
    let chunks = "4\r\n<p>r\r\n4\r\night\r\n0\r\n\r\n";
    for answer in [
        with("Content-Type: text/html\r\nContent-Security-Policy: default-src 'self';\r\n img-src *\r\n"),
        with("Content-Type: text/html\r\nSet-Cookie: a=b;\r\n\tpath=/\r\n"),
        with("Content-Type: text/html\r\nX-Foo : bar\r\n"),
        with("Content-Type : text/html\r\n"),
        with("Content-Type: text/html\r\nno colon\r\n"),
        with("Content-Type: text/html\r\n(x): y\r\n"),
        with("Content-Type: html\r\n"),
        with("Content-Type: text/html charset=utf-8\r\n"),
        with("Content-Type: image/png\r\nContent-Type: text/html\r\n"),
        with("Content-Type: text/html\r\nContent-Encoding: UTF-8\r\n"),
        with("Content-Type: text/html\r\nContent-Encoding: none, identity\r\n"),
        with("Content-Type: text/html\r\n").replace("\r\n", "\n"),
        with("").replace("HTTP/1.1 200 OK", "HTTP/1.1  200"),
        with("").replace("HTTP/1.1 200 OK", "http/1.1 200 OK"),
        with("").replace("HTTP/1.1 200 OK", "HTTP/1.1 200OK"),
        with("").replace("HTTP/1.1 200 OK", "ICY 200 OK"),
        with("").replace("HTTP/1.1 200 OK", "HTTP 200 OK"),
        with("").replace("HTTP/1.1 200 OK", "\r\nHTTP/1.1 200 OK"),
        format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{page}"),
        format!("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n{chunks}").replace("\r\n", "\n"),
    ] {
        let got = fetch(&say(answer.clone().into_bytes()).await).await;
        assert_eq!(got.map(|page| page.body), Ok(page.into()), "{answer:?}");
    }
}

#[tokio::test]
async fn chunks_are_read_however_their_lines_end_and_whatever_follows_the_last() {
    for chunks in [
        "4\n<p>r\n4\night\n0\n\n",
        "4\n<p>r\r\n4\night\r\n0\r\n\r\n",
        "8\r\n<p>right\r\n0\r\nX-A : b\r\n\r\n",
        "8\r\n<p>right\r\n0\r\nno colon\r\n folded\r\n\r\n",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let url = say(answer.into_bytes()).await;
        assert_eq!(fetch(&url).await.map(|page| page.body), Ok("<p>right".into()), "{chunks:?}");
        let fetcher = fetcher(&settings());
        let start = fetcher.start(&url.parse().unwrap(), 3).await;
        assert!(matches!(start, Ok(Hop::Start(start)) if start.body == "<p>"), "{chunks:?}");
    }
}

#[tokio::test]
async fn an_empty_location_leads_nowhere() {
    for location in ["", "Location:\r\n", "Location: \t \r\n"] {
        let answer = format!("HTTP/1.1 302 Found\r\n{location}Content-Length: 0\r\n\r\n");
        assert_eq!(class(fetch(&say(answer.into_bytes()).await).await), Class::Http, "{location:?}");
    }
}

#[tokio::test]
async fn a_length_beside_a_coding_that_is_none_ends_the_page() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.read(&mut [0; 4096]).await;
            let answer =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 8\r\n\r\n<p>right";
            let _ = connection.write_all(answer.as_bytes()).await;
            // It goes on as if for a further request.
            open.push(connection);
        }
    });
    assert_eq!(fetch(&url).await.unwrap().body, "<p>right");
}

#[tokio::test]
async fn an_origin_whose_head_is_odd_is_asked_once_from_then_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = connection.read(&mut [0; 4096]).await;
            let answer = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
            let _ = connection.write_all(answer.as_bytes()).await;
        }
    });
    let fetcher = fetcher(&settings());
    for asked in [2, 3, 4] {
        assert_eq!(fetcher.fetch(&url).await.unwrap().body, "x");
        assert_eq!(count.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test]
async fn chunks_that_are_cut_are_no_page() {
    for cut in ["20\r\n<p>r", "4\r\n<p>r\r\n", "4\r\n<p>r\r\n4"] {
        let answer = format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{cut}");
        assert_eq!(class(fetch(&say(answer.into_bytes()).await).await), Class::Body, "{cut:?}");
    }
}

#[tokio::test]
async fn a_body_of_no_length_may_end_with_a_connection_of_tls_that_says_nothing() {
    let identity = Identity::speaking("http/1.1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = identity.acceptor.clone();
    tokio::spawn(async move {
        for head in ["", "Content-Length: 99\r\n", "Transfer-Encoding: chunked\r\n"] {
            let (connection, _) = listener.accept().await.unwrap();
            let mut connection = acceptor.accept(connection).await.unwrap();
            let _ = connection.read(&mut [0; 4096]).await;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n{head}\r\n5\r\nright"
            );
            connection.write_all(answer.as_bytes()).await.unwrap();
            // Without TLS's closing message.
            connection.get_mut().0.shutdown().await.unwrap();
        }
    });
    let fetcher = trusting(&identity, &settings());
    let url = format!("https://127.0.0.1:{port}/").parse().unwrap();
    assert_eq!(fetcher.fetch(&url).await.unwrap().body, "5\r\nright");
    for _ in 0..2 {
        assert_eq!(class(fetcher.fetch(&url).await), Class::Body);
    }
}
