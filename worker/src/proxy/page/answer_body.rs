//! The body of an answer to a page, which counts as under way until it has ended.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use super::activity::UnderWay;
use crate::proxy::refusal::{Body, BoxError};

/// The body of an answer. Fails if it is too large.
pub(super) struct AnswerBody {
    body: Body,
    /// Number of bytes that may still come.
    left: u64,
    under_way: UnderWay,
}

impl AnswerBody {
    pub(super) fn new(body: Body, most: u64, under_way: UnderWay) -> Self {
        Self { body, left: most, under_way }
    }

    pub(super) fn into_body(self) -> Body {
        self.boxed_unsync()
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        self.under_way.progress();
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => Poll::Ready(Some(Err("it is larger than `fetch.max_body`".into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
