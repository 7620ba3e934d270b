//! Replies that may have been lost: a call that is repeated with its number is carried out once.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;

use crate::problem::{Kind, Problem};

/// The kind of a call, and the number of replies that are kept of it.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) name: &'static str,
    pub(super) most: usize,
}

type Answer = Result<Bytes, Problem>;

/// The latest calls of a session, with their replies.
#[derive(Default)]
pub(super) struct Replies(Mutex<VecDeque<Kept>>);

/// A call by its kind and its number, with its reply.
type Kept = (&'static str, u64, Shared<BoxFuture<'static, Answer>>);

impl Replies {
    /// Returns the reply to the call with this number: of the call that was made before, or else of `call`, which goes on
    /// if the caller is gone.
    pub(super) async fn once<F: Future<Output = Answer> + Send + 'static>(
        &self,
        Slot { name, most }: Slot,
        number: u64,
        call: impl FnOnce() -> F,
    ) -> Answer {
        let answering = {
            let mut kept = self.0.lock();
            match kept.iter().find(|(kind, known, _)| (*kind, *known) == (name, number)) {
                Some((_, _, answering)) => answering.clone(),
                None => {
                    let running = tokio::spawn(call());
                    let answering = async move {
                        running
                            .await
                            .unwrap_or_else(|_| Err(Problem::new(Kind::Unavailable, "the call was cut off")))
                    };
                    let answering = answering.boxed().shared();
                    let of_kind = kept.iter().filter(|(kind, ..)| *kind == name).count();
                    if of_kind >= most
                        && let Some(oldest) = kept.iter().position(|(kind, ..)| *kind == name)
                    {
                        kept.remove(oldest);
                    }
                    kept.push_back((name, number, answering.clone()));
                    answering
                }
            }
        };
        answering.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const SLOT: Slot = Slot { name: "settle", most: 2 };

    fn counting(calls: &Arc<AtomicU32>) -> impl Future<Output = Answer> + Send + 'static + use<> {
        let calls = Arc::clone(calls);
        async move { Ok(Bytes::from(calls.fetch_add(1, Ordering::Relaxed).to_string())) }
    }

    #[tokio::test]
    async fn a_repeated_call_is_carried_out_once() {
        let (replies, calls) = (Replies::default(), Arc::default());
        for number in [1, 1, 2, 1, 2] {
            let answer = replies.once(SLOT, number, || counting(&calls)).await.unwrap();
            assert_eq!(answer, (number - 1).to_string().as_bytes());
        }
    }

    #[tokio::test]
    async fn only_the_latest_replies_of_each_kind_are_kept() {
        let (replies, calls) = (Replies::default(), Arc::default());
        let of_another_kind = Slot { name: "claim", most: 1 };
        replies.once(of_another_kind, 1, || counting(&calls)).await.unwrap();
        for number in 1..=100 {
            replies.once(SLOT, number, || counting(&calls)).await.unwrap();
        }
        assert_eq!(replies.0.lock().len(), 3);
        let before = calls.load(Ordering::Relaxed);
        replies.once(SLOT, 100, || counting(&calls)).await.unwrap();
        replies.once(of_another_kind, 1, || counting(&calls)).await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), before);
    }

    #[tokio::test]
    async fn a_call_whose_caller_is_gone_goes_on() {
        let (replies, calls) = (Replies::default(), Arc::<AtomicU32>::default());
        let (begin, begun) = tokio::sync::oneshot::channel::<()>();
        let counted = counting(&calls);
        let call = async move {
            begun.await.unwrap();
            counted.await
        };
        assert!(replies.once(SLOT, 7, || call).now_or_never().is_none());
        begin.send(()).unwrap();
        assert_eq!(replies.once(SLOT, 7, || counting(&calls)).await.unwrap(), "0");
    }
}
