//! Writes the body of a file as it arrives.

use std::sync::Arc;
use std::time::Duration;

use rand::random_range;
use tokio::time::Instant;
use trawl_common::frontier::Request;
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason, Skip};
use trawl_common::health::of_spider;
use trawl_common::ports::{Error, ErrorKind, PartialFile};
use trawl_common::spider::Download;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_extract::{FileType, SNIFFED};
use trawl_web::{Answer, Fetcher, FileBody, OpenedFile};

use crate::claimed::ClaimedUrl;
use crate::fetch::Fetching;
use crate::schedule::domains::Domains;

/// Approximate delay before a file is tried again that another attempt still writes to.
const BUSY_DELAY: Duration = Duration::from_secs(2);

/// Approximate delay before a file is tried again that could not be written: its host may have to send all of it once
/// more.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Time without a repetition after which files count as written again.
const RECOVERY_TIME: Duration = Duration::from_secs(90);

/// One attempt to download a file.
pub(super) struct Transfer {
    request: Arc<Request>,
    max_size: u64,
    types: Vec<String>,
    domains: Arc<Domains>,
    /// `None` after it was discarded.
    part: Option<Box<dyn PartialFile>>,
    /// The time until the last response began.
    latency: Option<Duration>,
    end: Option<End>,
}

/// The end of an attempt whose response was a success.
enum End {
    /// The file is complete.
    Whole(FileType),
    /// It has another type than its rule wants.
    Unwanted,
    /// It has changed since an earlier attempt, of which nothing is left now.
    Changed,
    /// It cannot be written.
    Unwritten(Error),
}

/// The reason why a body is not written to its end.
enum Broken {
    Failed(Failure),
    Unwanted,
    Unwritten(Error),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Unwritten(error)
    }
}

impl Transfer {
    pub(super) fn new(
        request: Arc<Request>,
        rule: &Download,
        domains: &Arc<Domains>,
        part: Box<dyn PartialFile>,
    ) -> Self {
        Self {
            request,
            max_size: rule.max_size.as_u64(),
            types: rule.types.clone(),
            domains: Arc::clone(domains),
            part: Some(part),
            latency: None,
            end: None,
        }
    }

    /// Requests the file, or the rest of it, and writes what arrives. The response has no body then.
    pub(super) async fn ask(&mut self, fetcher: &Fetcher, hop: Option<&Hop>) -> Result<Answer, Failure> {
        let begun = Instant::now();
        let left = self.part.as_ref().and_then(|part| part.left().cloned());
        match fetcher.open_file(&self.request, hop, left.as_ref(), self.max_size).await? {
            OpenedFile::Redirect(redirect) => Ok(Answer::Redirect(redirect)),
            OpenedFile::Changed(head) => {
                self.discard().await;
                self.end = Some(End::Changed);
                Ok(Answer::Page(head))
            }
            OpenedFile::Body(body) => {
                let (latency, url) = (begun.elapsed(), hop.map_or(&self.request.url, |hop| &hop.url));
                self.latency = Some(latency);
                self.domains.mark_begun(HostKey::domain(&url.host()), latency);
                self.receive(*body).await.map(Answer::Page)
            }
        }
    }

    async fn receive(&mut self, mut body: FileBody) -> Result<Response, Failure> {
        self.end = Some(match self.write(&mut body).await {
            Ok(kind) => End::Whole(kind),
            Err(Broken::Unwanted) => {
                self.discard().await;
                End::Unwanted
            }
            Err(Broken::Unwritten(error)) => End::Unwritten(error),
            Err(Broken::Failed(failure)) => {
                if body.resume.is_none() || failure.class == Class::Size {
                    self.discard().await;
                }
                return Err(failure);
            }
        });
        Ok(body.head)
    }

    /// Writes a body, and returns the type of the file.
    async fn write(&mut self, body: &mut FileBody) -> Result<FileType, Broken> {
        let Self { request, types, part: Some(part), .. } = self else { return Err(Broken::Unwanted) };
        let content_type = body.head.content_type().map(str::to_owned);
        let wanted = |start: &[u8]| {
            let kind = FileType::new(content_type.as_deref(), &request.url, start);
            if kind.is_one_of(types) { Ok(kind) } else { Err(Broken::Unwanted) }
        };
        if body.from == 0 {
            part.restart(body.resume.clone()).await?;
        }
        let mut start = Vec::new();
        let mut is_known = body.from > 0;
        while let Some(bytes) = body.next().await? {
            if !is_known {
                start.extend_from_slice(&bytes[..bytes.len().min(SNIFFED - start.len())]);
                if start.len() == SNIFFED {
                    wanted(&start)?;
                    (start, is_known) = (Vec::new(), true);
                }
            }
            part.write(bytes).await?;
        }
        wanted(&part.start(SNIFFED).await?)
    }

    /// Removes what is written. A file that cannot be removed is removed later, with other old ones.
    async fn discard(&mut self) {
        if let Some(part) = self.part.take() {
            let _ = part.discard().await;
        }
    }

    /// Returns the time until the last response began.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.latency
    }

    /// Returns the outcome of a URL whose file is not complete in spite of a success.
    pub(super) fn outcome(
        &mut self,
        fetching: &Fetching,
        claimed: &mut ClaimedUrl,
        store: &str,
    ) -> Option<Outcome> {
        match self.end.take()? {
            end @ End::Whole(_) => {
                self.end = Some(end);
                None
            }
            End::Unwanted => Some(Outcome::Skipped(Skip::ContentType)),
            End::Changed => {
                (claimed.message.slot, claimed.message.turn) = (None, None);
                Some(Outcome::Snooze { until: UnixMs::now() })
            }
            End::Unwritten(error) => Some(unwritten(fetching, claimed, store, &error)),
        }
    }

    /// Returns the complete file and its type.
    pub(super) fn whole(self) -> Option<(Box<dyn PartialFile>, FileType)> {
        match (self.part, self.end) {
            (Some(part), Some(End::Whole(kind))) => Some((part, kind)),
            _ => None,
        }
    }
}

/// Returns the outcome of a URL whose file cannot be written: it waits until the store of this name takes it, unless no
/// file can have its name.
pub(super) fn unwritten(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    store: &str,
    error: &Error,
) -> Outcome {
    let delay = match error.kind {
        ErrorKind::Refused => {
            return Outcome::Failed(Failure::new(Class::Machine, error), Reason::Final);
        }
        // The attempt that writes to it belongs to a lease that has lapsed, and is about to end.
        ErrorKind::Busy => BUSY_DELAY,
        _ => {
            let what = of_spider(&claimed.message.crawl.spider, store);
            fetching.context.health.report_recent_failure(&what, error, RECOVERY_TIME);
            RETRY_DELAY
        }
    };
    (claimed.message.slot, claimed.message.turn) = (None, None);
    Outcome::Snooze { until: UnixMs::now().plus(delay.mul_f64(random_range(1.0..2.0))) }
}
