use async_compression::tokio::bufread::GzipEncoder;
use bytes::Bytes;
use tokio::io::AsyncReadExt;

use super::*;

/// A site with a page of 300 KiB, with and without its length, compressed, and a small page.
async fn site() -> String {
    const LARGE: usize = 300 * 1024;
    let in_parts = || async {
        let parts = (0..LARGE / 1024).map(|_| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1024])));
        Body::from_stream(stream::iter(parts))
    };
    let packed = || async {
        let mut packed = Vec::new();
        GzipEncoder::new([b'x'; LARGE].as_slice()).read_to_end(&mut packed).await.unwrap();
        ([("content-type", "text/html"), ("content-encoding", "gzip")], packed)
    };
    let router = Router::new()
        .route("/small", get(|| async { "small" }))
        .route("/whole", get(|| async { "x".repeat(LARGE) }))
        .route("/parts", get(in_parts))
        .route("/packed", get(packed));
    serve(router).await
}

#[tokio::test]
async fn a_large_body_waits_for_its_share_of_the_memory_and_a_small_one_takes_none() {
    let origin = site().await;
    let settings =
        settings::Fetch { max_body: ByteSize::kib(512), timeout: Duration::from_millis(300), ..settings() };
    for page in ["whole", "parts", "packed"] {
        let memory = MemoryBudget::new(512 * 1024);
        let fetcher = fetcher(&settings).within(memory.clone());
        let ask = async |path: &str| fetcher.fetch(&format!("{origin}/{path}").parse().unwrap()).await;
        let others = memory.take(300 * 1024).await;
        assert_eq!(class(ask(page).await), Class::Timeout, "{page}");
        assert_eq!(ask("small").await.unwrap().body, "small");
        drop(others);
        let first = ask(page).await.unwrap();
        assert_eq!(first.body.len(), 300 * 1024, "{page}");
        assert_eq!(class(ask(page).await), Class::Timeout, "the first still has its share");
        drop(first);
        assert!(ask(page).await.is_ok());
    }
}
