//! Forwarding of a request, and of its response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::{Request, Response};
use tokio::time::{Instant, Sleep, sleep};
use trawl_common::frontier::outcome::is_welcoming;
use trawl_common::host_schedules::HostPermit;
use trawl_common::metrics;
use trawl_common::names::CrawlRef;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_web::{Passed, PassedBody};

use super::credentials::Run;
use super::refusal::{Body, BoxError, Refusal};
use super::{HandlerProxy, User, permits};

/// Forwards a request when its host may be asked, and returns its response. The host's response counts for
/// its back-off; the program gets it unchanged.
pub(super) async fn forward(
    proxy: &Arc<HandlerProxy>,
    run: &Run,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let url = target(&request)?;
    let (policy, permit) = permits::request(proxy, &run.user, &url).await?;
    send(proxy, (&run.user, run.crawl.as_ref()), &policy.key, Some(permit), request).await
}

/// Forwards a request of a user, for a crawl if it is of one, to a host that may be asked. `permit` ends with the
/// response; a request that follows another one needs none.
pub(super) async fn send(
    proxy: &Arc<HandlerProxy>,
    (user, crawl): (&User, Option<&CrawlRef>),
    host: &HostKey,
    permit: Option<HostPermit>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let begun = Instant::now();
    let answer = user.passage.send(request).await;
    let Passed { response, refusal } = match answer {
        Ok(passed) => passed,
        Err(failure) => {
            metrics::fetched(None, begun.elapsed());
            return Err(failure.into());
        }
    };
    let status = response.status().as_u16();
    let is_welcome = is_welcoming(status);
    let under_way = UnderWay { permit, is_welcome, status, begun };
    if let Some(refusal) = refusal {
        let (asker, politeness) = (&proxy.asker, &user.own.politeness);
        if let Err(error) = asker.back_off(host, politeness, &refusal, crawl).await {
            asker.schedules.health.abort(error);
        }
    }
    let longest = proxy.asker.settings.fetch.timeout;
    Ok(response.map(|body| AnswerBody { body, longest, pause: None, _under_way: under_way }.boxed_unsync()))
}

/// Returns the URL requested, which must be absolute (RFC 9112 3.2.2).
fn target(request: &Request<Incoming>) -> Result<CanonicalUrl, Refusal> {
    let uri = request.uri();
    if uri.scheme().is_none() {
        return Err(Refusal::nonsense(format!("this is a proxy: ask it for whole URLs, not for {uri}")));
    }
    CanonicalUrl::parse(&uri.to_string()).map_err(|error| Refusal::nonsense(format!("{uri}: {error}")))
}

/// A request that counts as in flight until this is dropped.
struct UnderWay {
    permit: Option<HostPermit>,
    is_welcome: bool,
    status: u16,
    begun: Instant,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        metrics::fetched(Some(self.status), self.begun.elapsed());
        if let Some(permit) = self.permit.take() {
            drop(permit.end(self.is_welcome));
        }
    }
}

/// The body of a response. Fails if a host pauses for too long.
struct AnswerBody {
    body: PassedBody,
    longest: Duration,
    /// Runs since the body waits for more data.
    pause: Option<Pin<Box<Sleep>>>,
    _under_way: UnderWay,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.pause = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let longest = this.longest;
        let pause = this.pause.get_or_insert_with(|| Box::pin(sleep(longest)));
        pause
            .as_mut()
            .poll(cx)
            .map(|()| Some(Err(format!("no more of the answer within {longest:?} (`fetch.timeout`)").into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
