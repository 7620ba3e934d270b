//! Tests of the times that the proxy waits for programs and hosts, on paused time.

use tokio::io::duplex;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use trawl_common::web::newcomers::Newcomers;
use trawl_common::web::url::CanonicalUrl;

use super::super::{listen, permits};
use super::*;

/// Returns the time after which a connection ends whose client sends this, and reads nothing.
async fn ends_after(sent: &'static str, unread: usize) -> Duration {
    let (proxy, _) = in_test_time(|_| {});
    let (near, mut far) = duplex(unread);
    let permit = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
    let begun = Instant::now();
    let serving = listen::serve(proxy, near, Arc::new(Newcomers::default()).enter(permit));
    let sending = async {
        far.write_all(sent.as_bytes()).await.unwrap();
        std::future::pending().await
    };
    tokio::select! {
        () = serving => begun.elapsed(),
        () = sending => unreachable!("it never ends"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_request_comes_within_fifteen_seconds() {
    assert_eq!(ends_after("", 1024).await.as_secs(), 15);
    assert_eq!(ends_after("GET http://a.example/ HTTP/1.1\r\nA: ", 1024).await.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn who_takes_none_of_its_answer_for_half_a_minute_loses_the_connection() {
    let ended = ends_after("GET http://a.example/ HTTP/1.1\r\n\r\n", 64).await;
    assert_eq!(ended.as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_slot_for_two_minutes_at_most() {
    let (proxy, run) = in_test_time(|settings| settings.politeness.rate = "1/m".parse().unwrap());
    let (url, begun) = ("http://192.0.2.1/".parse::<CanonicalUrl>().unwrap(), Instant::now());
    let asking = (0..4).map(|_| async {
        let asked = permits::request(&proxy, &run.user, &url).await;
        (begun.elapsed().as_secs(), asked.map(|(_, permit)| drop(permit.end(true))))
    });
    let mut asked = futures::future::join_all(asking).await;
    asked.sort_by_key(|(waited, asked)| (asked.is_err(), *waited));
    let waited: Vec<u64> = asked.iter().map(|(waited, _)| *waited).collect();
    assert!(asked[..3].iter().all(|(_, asked)| asked.is_ok()), "{waited:?}");
    assert_eq!(waited[..3], [0, 60, 120]);
    let refused = asked.pop().unwrap().1.unwrap_err().into_response();
    assert_eq!(refused.status(), 503);
    let after = refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
    assert!((30..=180).contains(&after), "{after}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_two_minutes_is_refused_at_once() {
    let (proxy, run) = in_test_time(|settings| settings.politeness.rate = "1/h".parse().unwrap());
    let (url, begun) = ("http://192.0.2.1/".parse::<CanonicalUrl>().unwrap(), Instant::now());
    let first = permits::exchange(&proxy, &run.user, &url).await;
    assert!(first.is_ok());
    let refused = permits::exchange(&proxy, &run.user, &url).await.unwrap_err().into_response();
    assert_eq!((refused.status().as_u16(), begun.elapsed().as_secs()), (503, 0), "it is known at once");
}
