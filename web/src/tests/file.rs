//! Files that arrive in parts.

use std::io::Write;

use axum::body::Bytes;
use axum::response::Response;
use futures::StreamExt;
use trawl_common::ports::{Left, Resume};

use super::*;
use crate::file::{FileBody, OpenedFile};

const SIZE: usize = 2 << 20;
const ETAG: &str = "\"v1\"";

fn content() -> Bytes {
    (0..SIZE).map(|at| (at % 251) as u8).collect()
}

fn request(url: &str) -> Request {
    Request::new(url.parse().unwrap(), NewRequest::get("")).unwrap()
}

async fn open(url: &str, left: Option<&Left>) -> Result<OpenedFile, Failure> {
    fetcher(&settings()).open_file(&request(url), None, left, SIZE as u64).await
}

async fn body(url: &str, left: Option<&Left>) -> FileBody {
    match open(url, left).await {
        Ok(OpenedFile::Body(body)) => *body,
        Ok(_) => panic!("no body"),
        Err(failure) => panic!("{failure}"),
    }
}

async fn read(mut body: FileBody) -> Result<Vec<u8>, Failure> {
    let mut read = Vec::new();
    while let Some(part) = body.next().await? {
        read.extend_from_slice(&part);
    }
    Ok(read)
}

fn left(url: &str) -> Left {
    let resume = Resume { url: url.to_owned(), validator: ETAG.to_owned(), total: SIZE as u64 };
    Left { bytes: 1000, resume }
}

/// Serves `/` by this function of the header fields of a request.
async fn site(answer: impl Fn(&str, &str) -> Response + Clone + Send + Sync + 'static) -> String {
    let answer = move |headers: HeaderMap| {
        let answer = answer.clone();
        async move {
            let value = |name| headers.get(name).map_or("", |value: &HeaderValue| value.to_str().unwrap());
            assert_eq!(value("accept-encoding"), "identity");
            answer(value("range"), value("if-range"))
        }
    };
    format!("{}/", serve(Router::new().route("/", get(answer))).await)
}

fn part(range: &str, etag: &str) -> Response {
    let fields = [("content-range", range), ("etag", etag)];
    (
        StatusCode::PARTIAL_CONTENT,
        fields.map(|(name, value)| (name, value.to_owned())),
        content().slice(1000..),
    )
        .into_response()
}

#[tokio::test]
async fn a_file_comes_whole_and_says_how_to_go_on_with_it() {
    let url = site(|range, _| {
        assert_eq!(range, "");
        ([("etag", ETAG)], content()).into_response()
    })
    .await;
    let file = body(&url, None).await;
    assert_eq!((file.from, file.resume.as_ref()), (0, Some(&left(&url).resume)));
    assert!(read(file).await.unwrap() == content());
    // What is left is of another URL.
    assert_eq!(body(&url, Some(&left("http://other.example/"))).await.from, 0);
}

#[tokio::test]
async fn the_rest_of_a_file_comes_if_the_file_is_the_same() {
    let url = site(|range, validator| {
        assert_eq!((range, validator), ("bytes=1000-", ETAG));
        part(&format!("bytes 1000-{}/{SIZE}", SIZE - 1), ETAG)
    })
    .await;
    let file = body(&url, Some(&left(&url))).await;
    assert_eq!(file.from, 1000);
    assert!(read(file).await.unwrap() == content()[1000..]);
}

#[tokio::test]
async fn another_file_comes_from_its_beginning() {
    let url = site(|_, _| ([("etag", "\"v2\"")], content()).into_response()).await;
    let file = body(&url, Some(&left(&url))).await;
    assert_eq!((file.from, file.resume.as_ref().unwrap().validator.as_str()), (0, "\"v2\""));
    for answer in [
        StatusCode::PRECONDITION_FAILED.into_response(),
        StatusCode::RANGE_NOT_SATISFIABLE.into_response(),
        part(&format!("bytes 999-{}/{SIZE}", SIZE - 2), ETAG),
        part(&format!("bytes 1000-{SIZE}/{}", SIZE + 1), ETAG),
        part(&format!("bytes 1000-{}/{SIZE}", SIZE - 1), "\"v2\""),
        part("bytes */1000", ETAG),
        part("nonsense", ETAG),
    ] {
        let answer = Arc::new(std::sync::Mutex::new(Some(answer)));
        let url = site(move |_, _| answer.lock().unwrap().take().unwrap()).await;
        let opened = open(&url, Some(&left(&url))).await;
        assert!(matches!(opened, Ok(OpenedFile::Changed(_))));
    }
}

#[tokio::test]
async fn a_part_that_nobody_asked_for_is_no_file() {
    let url = site(|_, _| part(&format!("bytes 1000-{}/{SIZE}", SIZE - 1), ETAG)).await;
    assert_eq!(open(&url, None).await.err().unwrap().class, Class::Body);
}

#[tokio::test]
async fn a_file_that_is_too_large_fails_as_soon_as_that_shows() {
    let url = site(|_, _| vec![0; SIZE + 1].into_response()).await;
    let failure = open(&url, None).await.err().unwrap();
    assert_eq!(failure.class, Class::Size);
    assert!(failure.detail.ends_with("(`max_size` of its [[download]])"), "{failure}");
    let endless = || stream::repeat_with(|| Ok::<_, Infallible>(vec![0; 64 * 1024]));
    let url = site(move |_, _| Body::from_stream(endless()).into_response()).await;
    assert_eq!(class(read(body(&url, None).await).await), Class::Size);
}

#[tokio::test]
async fn a_file_that_ends_early_is_not_complete() {
    let url = site(|_, _| {
        let end = stream::once(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(std::io::Error::other("away"))
        });
        let half = stream::iter([Ok(content().slice(..1000))]).chain(end);
        ([("content-length", SIZE.to_string())], Body::from_stream(half)).into_response()
    })
    .await;
    assert_eq!(class(read(body(&url, None).await).await), Class::Body);
}

#[tokio::test]
async fn a_file_that_stops_coming_fails_and_one_that_comes_fast_enough_may_take_its_time() {
    let quick = settings::Fetch { timeout: Duration::from_millis(200), ..settings() };
    let open = async |url: &str| match fetcher(&quick).open_file(&request(url), None, None, u64::MAX).await {
        Ok(OpenedFile::Body(body)) => read(*body).await,
        _ => panic!("no body"),
    };
    let start = || stream::iter([Ok::<_, Infallible>(content().slice(..1000))]);
    let url = site(move |_, _| Body::from_stream(start().chain(stream::pending())).into_response()).await;
    let failure = open(&url).await.unwrap_err();
    assert_eq!(failure.class, Class::Timeout);
    assert!(failure.detail.starts_with("1000 bytes in 200ms"), "{failure}");
    // Longer than `fetch.timeout` in all.
    let steady = || {
        stream::iter(0..6).then(|_| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok::<_, Infallible>(content().slice(..8 * 1024))
        })
    };
    let url = site(move |_, _| Body::from_stream(steady()).into_response()).await;
    assert_eq!(open(&url).await.unwrap().len(), 6 * 8 * 1024);
}

#[tokio::test]
async fn a_file_that_is_compressed_on_its_way_is_unpacked_and_cannot_be_resumed() {
    let url = site(|_, _| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&content()).unwrap();
        ([("content-encoding", "gzip"), ("etag", ETAG)], packed.finish().unwrap()).into_response()
    })
    .await;
    let file = body(&url, None).await;
    assert_eq!(file.resume, None);
    assert!(read(file).await.unwrap() == content());
}

#[tokio::test]
async fn only_a_strong_validator_tells_that_a_file_is_the_same() {
    let (changed, sent) = ("Sat, 21 Nov 2026 15:45:29 GMT", "Sat, 21 Nov 2026 15:45:30 GMT");
    for (fields, validator) in [
        (&[("etag", ETAG), ("last-modified", changed)][..], Some(ETAG)),
        (&[("etag", "W/\"v1\""), ("last-modified", changed), ("date", sent)], Some(changed)),
        (&[("last-modified", changed), ("date", changed)], None),
        (&[("etag", "W/\"v1\"")], None),
        (&[("etag", "v1")], None),
        (&[("etag", ETAG), ("accept-ranges", "none")], None),
        (&[], None),
    ] {
        let fields: Vec<(&str, &str)> = fields.to_vec();
        let url = site(move |_, _| {
            let mut answer = content().into_response();
            for (name, value) in &fields {
                let name: reqwest::header::HeaderName = name.parse().unwrap();
                answer.headers_mut().insert(name, value.parse().unwrap());
            }
            answer
        })
        .await;
        let resume = body(&url, None).await.resume;
        assert_eq!(resume.map(|resume| resume.validator), validator.map(str::to_owned));
    }
}
