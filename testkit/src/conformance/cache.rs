//! The promises of every cache.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trawl_common::ports::{Cache, Result};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;

use super::{eventually, page, unique};

const LONG: Duration = Duration::from_secs(600);

/// Makes a test of each promise of a cache; the fixture returns a guard and an `Arc<dyn Cache>`.
#[macro_export]
macro_rules! cache_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, cache:
            what_was_put_is_got
            what_was_never_put_is_a_miss
            every_byte_and_every_absence_survives
            the_last_response_is_the_one_kept
            a_response_is_gone_after_its_time
        }
    };
}

fn response(body: impl Into<Bytes>) -> Response {
    Response {
        status: 200,
        headers: Headers::from_iter([
            ("content-type", "text/html; charset=iso-8859-1"),
            ("etag", "\"\u{e9}\""),
        ]),
        fetched_at: UnixMs(1_700_000_000_123),
        address: Some([127, 0, 0, 1].into()),
        redirected_to: None,
        body: body.into(),
    }
}

/// Each stored response is returned for its URL, repeatedly.
pub async fn what_was_put_is_got(cache: &Arc<dyn Cache>) -> Result<()> {
    let site = unique("site");
    for number in 0..3 {
        cache.put(&page(&site, number), &response(format!("page {number}")), LONG).await?;
    }
    for number in [0, 1, 2, 0] {
        let kept = cache.get(&page(&site, number)).await?;
        assert_eq!(kept, Some(response(format!("page {number}"))));
    }
    Ok(())
}

/// A URL that was never stored is a miss, not an error.
pub async fn what_was_never_put_is_a_miss(cache: &Arc<dyn Cache>) -> Result<()> {
    let site = unique("site");
    cache.put(&page(&site, 0), &response("here"), LONG).await?;
    assert_eq!(cache.get(&page(&site, 1)).await?, None);
    Ok(())
}

/// Every byte of a body survives, large or empty, and fields that a response lacks are still missing afterwards.
pub async fn every_byte_and_every_absence_survives(cache: &Arc<dyn Cache>) -> Result<()> {
    let site = unique("site");
    let every_byte: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let responses = [
        response(every_byte),
        Response { headers: Headers::default(), address: None, ..response("") },
        Response { status: 203, redirected_to: Some(page(&site, 9)), ..response("line\r\n\0\u{fffd}") },
    ];
    for (number, response) in responses.iter().enumerate() {
        cache.put(&page(&site, number), response, LONG).await?;
        assert_eq!(cache.get(&page(&site, number)).await?.as_ref(), Some(response));
    }
    Ok(())
}

/// A new response for a URL replaces the old one.
pub async fn the_last_response_is_the_one_kept(cache: &Arc<dyn Cache>) -> Result<()> {
    let url = page(&unique("site"), 0);
    cache.put(&url, &response("old"), LONG).await?;
    cache.put(&url, &response("new"), LONG).await?;
    assert_eq!(cache.get(&url).await?, Some(response("new")));
    Ok(())
}

/// A response expires after its own time, even if an earlier one was given longer.
pub async fn a_response_is_gone_after_its_time(cache: &Arc<dyn Cache>) -> Result<()> {
    let site = unique("site");
    let (kept, lapsing) = (page(&site, 0), page(&site, 1));
    cache.put(&kept, &response("kept"), LONG).await?;
    cache.put(&lapsing, &response("first"), LONG).await?;
    cache.put(&lapsing, &response("second"), Duration::from_millis(50)).await?;
    eventually(Duration::from_secs(10), async || Ok(cache.get(&lapsing).await?.is_none())).await?;
    assert_eq!(cache.get(&kept).await?, Some(response("kept")));
    Ok(())
}
