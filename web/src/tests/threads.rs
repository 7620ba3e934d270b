//! Requests on separate threads.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, mpsc};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::*;

/// The channel that the next lookup waits for.
static AWAITED: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);

/// A lookup that keeps its thread busy.
fn busy_lookup(_: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    let awaited = AWAITED.lock().unwrap().take().unwrap();
    let waited = awaited.recv_timeout(Duration::from_secs(10)).map_err(io::Error::other);
    std::future::ready(waited.map(|()| vec![([127, 0, 0, 1], 0).into()])).boxed()
}

#[tokio::test]
async fn a_request_that_keeps_its_thread_busy_keeps_no_other_waiting() {
    let origin = serve(Router::new().route("/", get(|| async { "hello" }))).await;
    let (release, awaited) = mpsc::channel();
    *AWAITED.lock().unwrap() = Some(awaited);
    let fetcher = fetcher(&settings());
    let apart = Fetcher::with(&settings(), busy_lookup, trust::tls().unwrap()).unwrap();
    let apart = apart.on(&Threads::start(1).unwrap()).unwrap();
    let busy = origin.replace("127.0.0.1", "busy.example").parse().unwrap();
    let busy = tokio::spawn(async move { apart.fetch(&busy).await });
    assert_eq!(fetcher.fetch(&origin.parse().unwrap()).await.unwrap().body, "hello");
    release.send(()).unwrap();
    assert_eq!(busy.await.unwrap().unwrap().body, "hello");
}

#[tokio::test]
#[should_panic(expected = "on a thread of its own")]
async fn a_panic_there_is_the_callers() {
    Threads::start(1).unwrap().run(async { panic!("on a thread of its own") }).await
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn these_threads_stand_back_behind_the_others() {
    let nice = || rustix::process::getpriority_process(None).unwrap();
    let there = Threads::start(1).unwrap().run(async move { nice() }).await;
    assert_eq!(there, (nice() + 10).min(19));
}
