//! A cache of API responses that several pages want at about the same time.
//!
//! Twenty open pages send twenty requests in three seconds, and most of them are the same. Every visitor may
//! read everything, so the response to one is valid for all. After a change through the console nothing is
//! taken from the cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::failure::Failure;

/// Lifetime of a response: short, so that a visitor who waits for a change sees it soon.
const CACHE_TTL: Duration = Duration::from_secs(1);
/// Maximum number of responses to store.
const MAX_STORED: usize = 64;
/// Maximum size of a stored response, in bytes.
const MAX_STORED_BYTES: usize = 1024 * 1024;

/// The recent responses, by request.
#[derive(Default)]
pub(crate) struct Shared(Mutex<HashMap<String, Arc<Place>>>);

/// The response, or an empty place while the first caller waits for it.
type Place = tokio::sync::Mutex<Option<(Instant, Answered)>>;

type Answered = Result<Bytes, Failure>;

impl Shared {
    /// Returns the stored response to `question` if it is fresh, otherwise the one that `ask` returns.
    pub(crate) async fn get(&self, question: &str, ask: impl Future<Output = Answered>) -> Answered {
        let Some(place) = self.place(question) else { return ask.await };
        let mut kept = place.lock().await;
        if let Some((_, answer)) = kept.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TTL) {
            return answer.clone();
        }
        let answer = ask.await;
        *kept = is_for_all(&answer).then(|| (Instant::now(), answer.clone()));
        answer
    }

    /// Empties the cache.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }

    /// Returns the place of the response; `None` if the cache is full.
    fn place(&self, question: &str) -> Option<Arc<Place>> {
        let mut places = self.0.lock();
        if let Some(place) = places.get(question) {
            return Some(Arc::clone(place));
        }
        let is_fresh = |(at, _): &(Instant, Answered)| at.elapsed() < CACHE_TTL;
        // A locked place is waiting for its response.
        places.retain(|_, place| place.try_lock().map_or(true, |kept| kept.as_ref().is_some_and(is_fresh)));
        (places.len() < MAX_STORED).then(|| Arc::clone(places.entry(question.to_owned()).or_default()))
    }
}

/// Whether other visitors would get the same response. Exceeding the rate limit concerns only the one who
/// did.
fn is_for_all(answer: &Answered) -> bool {
    match answer {
        Ok(bytes) => bytes.len() <= MAX_STORED_BYTES,
        Err(failure) => failure.status() != StatusCode::TOO_MANY_REQUESTS,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts the calls of the API.
    #[derive(Default)]
    struct Asked(AtomicUsize);

    impl Asked {
        async fn ask(&self, answer: Answered) -> Answered {
            self.0.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer
        }

        fn often(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_ask_the_same_at_once_ask_once_and_a_second_later_again() {
        let (shared, asked) = (Shared::default(), Asked::default());
        let ask = || shared.get("/a", asked.ask(Ok("x".into())));
        let all = futures::future::join_all((0..20).map(|_| ask())).await;
        assert!(all.iter().all(|answer| *answer == Ok("x".into())));
        assert_eq!(asked.often(), 1);
        tokio::time::advance(CACHE_TTL).await;
        assert_eq!(ask().await, Ok("x".into()));
        assert_eq!(asked.often(), 2);
        shared.forget();
        assert_eq!(ask().await, Ok("x".into()));
        assert_eq!(asked.often(), 3, "after a change");
    }

    #[tokio::test(start_paused = true)]
    async fn that_one_caller_asks_too_often_is_no_answer_to_another() {
        let (shared, asked) = (Shared::default(), Asked::default());
        for (status, often) in [(StatusCode::TOO_MANY_REQUESTS, 2), (StatusCode::SERVICE_UNAVAILABLE, 3)] {
            for _ in 0..2 {
                let failure = Failure::new(status, "", "");
                assert!(shared.get("/a", asked.ask(Err(failure))).await.is_err());
            }
            assert_eq!(asked.often(), often, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let (shared, asked) = (Shared::default(), Asked::default());
        for number in 0..2 * MAX_STORED {
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(shared.get(&number.to_string(), asked.ask(Ok("x".into()))).await.is_ok());
        }
        assert!(shared.0.lock().len() <= MAX_STORED);
        assert!(shared.get("large", asked.ask(Ok(vec![0; MAX_STORED_BYTES + 1].into()))).await.is_ok());
        assert!(shared.get("large", asked.ask(Ok("x".into()))).await == Ok("x".into()), "it was not kept");
    }
}
