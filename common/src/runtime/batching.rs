//! Collecting batches: a server call for many costs little more than for one.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// The wait for more after the first of a batch. A page takes far longer.
pub(crate) const LINGER: Duration = Duration::from_millis(5);

/// Once a batch has this many elements, it does not wait for more.
const MIN_BATCH: usize = 16;

/// Waits for one element, and if others came with it does not complete the batch, a moment for more; takes at most
/// `most`. Returns the number received: 0 if the channel is closed and empty.
pub async fn gather<T>(from: &mut mpsc::Receiver<T>, into: &mut Vec<T>, most: usize) -> usize {
    let mut count = from.recv_many(into, most).await;
    let until = Instant::now() + LINGER;
    while count > 0 && count < most.min(MIN_BATCH) {
        match timeout_at(until, from.recv_many(into, most - count)).await {
            Ok(more) if more > 0 => count += more,
            Ok(_) | Err(_) => break,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_within_a_moment_comes_together() {
        let (sender, mut receiver) = mpsc::channel(8);
        let begun = Instant::now();
        tokio::spawn(async move {
            for number in 0..6 {
                sender.send(number).await.unwrap();
                tokio::time::sleep(LINGER / 2).await;
            }
        });
        let mut batch = Vec::new();
        assert_eq!(gather(&mut receiver, &mut batch, 2).await, 2, "no more than it may");
        assert_eq!(gather(&mut receiver, &mut batch, 8).await, 2, "no longer than a moment");
        assert_eq!(gather(&mut receiver, &mut batch, 8).await, 2);
        assert_eq!(gather(&mut receiver, &mut batch, 8).await, 0, "the sender has gone");
        assert_eq!(batch, [0, 1, 2, 3, 4, 5]);
        assert!(begun.elapsed() < LINGER * 5);
    }
}
