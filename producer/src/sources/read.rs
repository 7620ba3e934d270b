//! Reads one source: a blocking parser on its own thread, fed by a file or by the network.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::Path;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::warn;
use trawl_common::frontier::route::Hints;
use trawl_common::list::{self, Broken, Line, ListEntry};
use trawl_common::text::printable;
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};

use crate::finding::Finding;
use crate::sitemap::{self, Fault, Found, Limits, Origin, Plain, SitemapError, Summary};
use crate::sources::asking::Asking;
use crate::sources::download::{self, Parts};
use crate::sources::page::{self, PageSources};
use crate::sources::read_error::ReadError;
use crate::sources::sitemap_queue::Budget;
use crate::sources::sorter::Sorter;
use crate::sources::source::Source;

/// Number of findings that are passed on at once; those of standard input are passed on one by one, because the next
/// line may take long.
pub(crate) const PART_SIZE: usize = 50;

/// Size in bytes of tasks and requests at which findings are passed on earlier.
const PART_BYTES: usize = 1 << 20;

/// Maximum number of invalid entries of one source that become dead letters; the others are counted.
pub(crate) const MAX_INVALID: u64 = 10_000;

/// Maximum number of invalid lines of a list that are named in the log.
const MAX_SHOWN_INVALID: u64 = 10;

/// The result of reading a source.
pub(crate) struct Yield {
    /// The sitemaps that it lists, up to the limit.
    pub(crate) sitemaps: Vec<String>,
    /// The number of sitemaps beyond the limit.
    pub(crate) left_out: u64,
    /// The number of entries that are not URLs.
    pub(crate) invalid: u64,
    /// The end of the reading, or the error.
    pub(crate) end: Result<Summary, ReadError>,
}

impl Yield {
    /// Returns the result for a source that could not be read.
    pub(crate) fn nothing(error: ReadError) -> Self {
        Self { sitemaps: Vec::new(), left_out: 0, invalid: 0, end: Err(error) }
    }
}

/// Reads `source` to its end, or until the receiver of `findings` is gone. Of a page only the start is read; `pages`
/// says how it is handled. If it `retries`, a failed request is repeated like that for a page.
pub(crate) async fn read(
    source: &Source,
    pages: Option<&PageSources>,
    retries: bool,
    asking: &Asking,
    sorter: &Sorter,
    findings: &mpsc::Sender<Vec<Finding>>,
) -> Yield {
    let part = if *source == Source::Stdin { 1 } else { PART_SIZE };
    let reading = Reading::new(source, sorter.clone(), findings.clone(), part);
    let settings = &sorter.settings.producer;
    let _leave = match source {
        Source::Stdin | Source::File(_) => Some(asking.reader().await),
        // The reading permit is held with the body.
        Source::Web(_) => None,
    };
    let mut origin = Origin::default();
    let reader: Result<Box<dyn Read + Send>, ReadError> = match source {
        Source::Stdin => Ok(Box::new(io::stdin())),
        Source::File(path) => open(path),
        Source::Web(url) => {
            tokio::select! {
                biased;
                () = findings.closed() => Err(ReadError::Stopped),
                opened = asking.open(url, retries, findings.clone()) => match opened {
                    Ok((head, body)) => {
                        origin = Origin::from_response(url, &head);
                        list(url, head, body, pages).await.map(|body| Box::new(body) as _)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    };
    let reader = match reader {
        Ok(reader) => reader,
        Err(error) => return reading.end(Err(error)),
    };
    let max_bytes = settings.max_bytes.as_u64();
    let limits = Limits { max_bytes, max_entries: settings.max_urls, ..Limits::default() };
    let parsing = tokio::task::spawn_blocking(move || reading.either(reader, &origin, &limits));
    until_closed(parsing, source, findings).await
}

/// Returns the result of a source that is being read. If the source is standard input, returns early when the receiver
/// is gone: reading a pipe ends only with its next line, which may never come.
async fn until_closed(
    parsing: JoinHandle<Yield>,
    source: &Source,
    findings: &mpsc::Sender<Vec<Finding>>,
) -> Yield {
    tokio::select! {
        biased;
        read = parsing => read.unwrap_or_else(|_| Yield::nothing(ReadError::Panic)),
        () = findings.closed(), if *source == Source::Stdin => Yield::nothing(ReadError::Stopped),
    }
}

/// Opens a local file, unless it is a page. A special file may be a pipe, which is not waited for here.
fn open(path: &Path) -> Result<Box<dyn Read + Send>, ReadError> {
    let mut file = File::open(path).map_err(ReadError::Open)?;
    if !file.metadata().map_err(ReadError::Open)?.is_file() {
        return Ok(Box::new(file));
    }
    let mut start = Vec::new();
    file.by_ref().take(page::START_BYTES as u64).read_to_end(&mut start).map_err(ReadError::Open)?;
    if page::is_page(None, &start) {
        return Err(ReadError::Page);
    }
    Ok(Box::new(Cursor::new(start).chain(file)))
}

/// Returns the body of a list on the web. A page is kept for the worker instead.
async fn list(
    url: &CanonicalUrl,
    head: Response,
    body: Parts,
    pages: Option<&PageSources>,
) -> Result<impl Read + Send + use<>, ReadError> {
    let (start, body) = download::peek(body, page::START_BYTES).await;
    if page::is_page(head.content_type(), &start) {
        if let Some(pages) = pages {
            pages.keep(url, head, body).await;
        }
        return Err(ReadError::Page);
    }
    Ok(download::reader(body))
}

/// A source that is being read: its findings are passed on in parts, or counted up to limits.
struct Reading {
    /// The source's display name.
    name: String,
    /// Whether the source is named like a list of entries.
    is_named_so: bool,
    sorter: Sorter,
    findings: mpsc::Sender<Vec<Finding>>,
    part: Vec<Finding>,
    /// Size of the pending tasks and requests in bytes.
    bytes: usize,
    /// Number of findings that are passed on at once.
    full: usize,
    sitemaps: Vec<String>,
    budget: Budget,
    left_out: u64,
    invalid: u64,
}

impl Reading {
    fn new(source: &Source, sorter: Sorter, findings: mpsc::Sender<Vec<Finding>>, full: usize) -> Self {
        Self {
            name: printable(&source.to_string(), 500),
            is_named_so: source.is_named_like_entries(),
            sorter,
            findings,
            part: Vec::with_capacity(full),
            bytes: 0,
            full,
            sitemaps: Vec::new(),
            budget: Budget::default(),
            left_out: 0,
            invalid: 0,
        }
    }

    /// Reads a list of entries (tasks, requests and URLs) or a published format, depending on the source's beginning
    /// and name.
    fn either(self, reader: Box<dyn Read + Send>, origin: &Origin, limits: &Limits) -> Yield {
        // Each entry is bounded, however many there are.
        let max_bytes = if self.is_named_so { u64::MAX } else { limits.max_bytes };
        let plain = match Plain::new(reader, max_bytes) {
            Ok(plain) => plain,
            Err(fault) => return self.end(Err(ReadError::Read(fault.into()))),
        };
        match plain.first() {
            Some(b'{' | b'"') => self.entries(plain.into_utf_8(origin)),
            Some(b'<' | b'[') => self.list(plain, origin, limits),
            _ if self.is_named_so => self.entries(plain.into_utf_8(origin)),
            _ => self.list(plain, origin, limits),
        }
    }

    /// Reads a list of pages, or of further lists, to its end.
    fn list(mut self, reader: impl Read, origin: &Origin, limits: &Limits) -> Yield {
        let read = sitemap::read(reader, origin, limits, &mut |found| self.take(found));
        self.end(read.map_err(ReadError::Content))
    }

    /// Reads a list of entries to its end.
    fn entries(mut self, reader: impl Read) -> Yield {
        let (mut is_first, mut is_other_json) = (true, false);
        let read = list::read(reader, ListEntry::from_line, |line| {
            is_other_json = std::mem::take(&mut is_first) && self.is_other_json(&line);
            if is_other_json { ControlFlow::Break(()) } else { self.take_line(line) }
        });
        if is_other_json {
            let error = SitemapError { fault: Fault::Json, before: Summary::default() };
            return self.end(Err(ReadError::Content(error)));
        }
        let broken = self.invalid;
        let summary = |lines: u64| Summary { urls: lines - broken, broken, ..Summary::default() };
        self.end(read.map(summary).map_err(ReadError::Read))
    }

    /// Whether this first line shows that the source is not a list for the spider: it has tasks, but the spider has no
    /// program; or it is other JSON, whose beginning only looked like a list.
    fn is_other_json(&self, line: &Line<ListEntry>) -> bool {
        let has_program = self.sorter.spider.handler.is_some();
        match &line.said {
            Ok(ListEntry::Task(_)) => !has_program,
            Ok(ListEntry::Request(_)) => false,
            Err(_) => !has_program && !self.is_named_so,
        }
    }

    fn take_line(&mut self, Line { number, said }: Line<ListEntry>) -> ControlFlow<()> {
        let (text, reason) = match said {
            Ok(ListEntry::Task(task)) => match self.sorter.task(task) {
                Ok(task) => return self.hand_on(task),
                Err(reason) => (format!("line {number}"), reason),
            },
            Ok(ListEntry::Request(new)) => {
                let url = printable(&new.url, MAX_URL_BYTES);
                match self.sorter.listed(new, Hints::default()) {
                    Ok(Some(candidate)) => return self.hand_on(Finding::Page(candidate)),
                    Ok(None) => return ControlFlow::Continue(()),
                    Err(reason) => (url, reason),
                }
            }
            Err(Broken { text, reason }) => (text, reason),
        };
        if self.invalid < MAX_SHOWN_INVALID {
            warn!(source = self.name, line = number, reason, "a line is left out, and becomes a dead letter");
        }
        self.hand_on(Finding::Invalid { text, reason: format!("{}, line {number}: {reason}", self.name) })
    }

    fn take(&mut self, found: Found) -> ControlFlow<()> {
        let finding = match found {
            Found::Url(entry) => match self.sorter.sort(&entry) {
                Some(finding) => finding,
                None => return ControlFlow::Continue(()),
            },
            Found::Broken(broken) => Finding::Invalid { text: broken.text, reason: broken.flaw.to_string() },
            Found::Sitemap(location) => {
                if self.budget.take(&location) {
                    self.sitemaps.push(location);
                } else {
                    self.left_out += 1;
                }
                return ControlFlow::Continue(());
            }
        };
        self.hand_on(finding)
    }

    fn hand_on(&mut self, finding: Finding) -> ControlFlow<()> {
        if matches!(finding, Finding::Invalid { .. }) {
            self.invalid += 1;
            if self.invalid > MAX_INVALID {
                return ControlFlow::Continue(());
            }
        }
        if let Finding::Page(candidate) = &finding {
            self.bytes += candidate.page.work.payload_bytes();
        }
        self.part.push(finding);
        let is_full = self.part.len() >= self.full || self.bytes >= PART_BYTES;
        if is_full { self.flush() } else { ControlFlow::Continue(()) }
    }

    /// Passes on the findings. Breaks once the run is being stopped.
    fn flush(&mut self) -> ControlFlow<()> {
        self.bytes = 0;
        let full = std::mem::replace(&mut self.part, Vec::with_capacity(self.full));
        match self.findings.blocking_send(full) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn end(mut self, end: Result<Summary, ReadError>) -> Yield {
        if !self.part.is_empty() {
            let _ = self.flush();
        }
        Yield { sitemaps: self.sitemaps, left_out: self.left_out, invalid: self.invalid, end }
    }
}
