//! One URL from its turn to its outcome.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::debug;
use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason, Skip};
use trawl_common::metrics;
use trawl_common::names::CrawlRef;
use trawl_common::politeness::permit::HostPermit;
use trawl_common::ports::{Memory, Page, Response};
use trawl_common::spider::item::{Change, Item, item_id};
use trawl_common::spider::page_history::{Tally, Visited};
use trawl_common::spider::{self, Required};
use trawl_common::time::UnixMs;
use trawl_common::trace;
use trawl_common::web::freshness::lifetime;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extracted, Extraction, Missing};
use trawl_handlers::{ItemsFile, Stream};
use trawl_web::{Answer, MAX_REDIRECTS, NoPage, Redirect, Trail};

use super::proxy::proxy_is_away;
use super::{apart, backoff};
use crate::handlers::{PageAbout, Reading, Running, Unread, not_run, read_page};
use crate::history::History;
use crate::items_file::{FileItems, Ids, InFile};
use crate::job::Job;
use crate::links::to_follow;
use crate::schedule;
use crate::settlement::{Settlement, Yield};
use crate::shared::Shared;
use crate::tasks::asked_for;

/// 1. Looks up what is remembered of the page, if its crawl fetches pages again.
/// 2. Looks into the response cache.
/// 3. Fetches, one redirect after another.
/// 4. Keeps the response.
/// 5. Extracts, unless its spider's program reads it: that takes its own time, after all this.
///
/// What follows from the outcome is `settle`'s business.
pub(crate) async fn process(shared: &Shared, mut job: Job, permit: HostPermit) -> Processed {
    let history = History::of(shared, &job).await;
    if let Some(skip) = history.reason_to_skip() {
        return Processed::Settled(Settlement::of(job, Outcome::Skipped(skip)));
    }
    let response = match response(shared, &mut job, &history, permit).await {
        Ok(response) => response,
        Err(outcome) => return Processed::Settled(without_page(job, history, outcome)),
    };
    let fetched = Fetched { job, history, response };
    match fetched.program().is_some() {
        true => Processed::ForProgram(Box::new(fetched)),
        false => Processed::Settled(fetched.settled(shared).await),
    }
}

/// How far a page has come.
pub(crate) enum Processed {
    /// It is known what becomes of it.
    Settled(Settlement),
    /// It is here, and its spider's program is to read it.
    ForProgram(Box<Fetched>),
}

/// A page that is here.
pub(crate) struct Fetched {
    job: Job,
    history: History,
    response: Response,
}

impl Fetched {
    /// The program that reads it, if one does.
    fn program(&self) -> Option<&Stream> {
        self.job.spider.program.as_ref().and_then(Running::reader)
    }

    /// What becomes of it, when it has been read.
    pub(crate) async fn settled(self, shared: &Shared) -> Settlement {
        let Self { job, history, response } = self;
        match read(shared, &job, &history, response).await {
            Ok(Some((yielded, remark))) => Settlement::done(job, yielded, remark),
            Ok(None) => Settlement::of(job, Outcome::Skipped(Skip::ContentType)),
            Err(outcome) => Settlement::of(job, outcome),
        }
    }
}

/// What follows from an answer that is no page: one that was remembered and is gone ends as done, with items that say so.
fn without_page(job: Job, history: History, outcome: Outcome) -> Settlement {
    let status = if let Outcome::Failed(failure, _) = &outcome { failure.status } else { None };
    let (Some(last), Some(status)) = (history.gone(&outcome), status) else {
        let remark = history.memory(&outcome);
        return Settlement::remembered(job, outcome, remark);
    };
    let items = gone(&job, last, status);
    let count = items.len() as u64;
    let page = Page {
        key: job.message.key(),
        crawl: job.message.crawl.clone(),
        referrer: job.message.referrer.clone(),
        items,
        exchange: None,
    };
    let (file, links, elsewhere, left_out, landed, bytes, missing) = Default::default();
    let spider = Arc::clone(&job.spider);
    let page = Some(page);
    let status = Some(status);
    let items = count;
    let yielded =
        Yield { spider, page, file, links, elsewhere, left_out, landed, status, items, bytes, missing };
    Settlement::done(job, yielded, Some(Memory::Gone))
}

/// The items that say of each item of a page that it is gone. Where nobody counted them, that is the first of each kind.
fn gone(job: &Job, last: &Visited, status: u16) -> Vec<Item> {
    let Job { url, message, spider, .. } = job;
    let kinds = || spider.spider.items.iter().map(|rule| rule.name.clone());
    let had = last.items.clone().unwrap_or_else(|| Tally::one_each(kinds()));
    let item = |(kind, id): (Option<&str>, String)| Item {
        id,
        url: url.to_string(),
        crawl: message.crawl.id.clone(),
        spider: message.crawl.spider.clone(),
        fetched_at: UnixMs::now().to_string(),
        status,
        depth: message.depth,
        item: kind.map(str::to_owned),
        change: Some(Change::Gone),
        final_url: None,
        fields: Default::default(),
    };
    had.ids(&message.crawl.spider, url).map(item).collect()
}

async fn response(
    shared: &Shared,
    job: &mut Job,
    history: &History,
    permit: HostPermit,
) -> Result<Response, Outcome> {
    let url = job.url.clone();
    let settings = &shared.settings.cache;
    // What was answered to one spider's own request is for no other.
    let is_own = job.request().is_some() || job.spider.spider.request != spider::Request::default();
    if settings.ttl.is_zero() || is_own {
        return fetch(shared, job, history, permit).await;
    }
    if let Some(response) = cached(shared, job, history).await {
        return Ok(response);
    }
    let response = fetch(shared, job, history, permit).await?;
    if response.redirected_to.is_some() {
        return Ok(response);
    }
    let ttl = settings.keeps(lifetime(&response.headers, response.fetched_at));
    if let Err(error) = shared.ports.cache.put(&url, &response, ttl).await {
        debug!(%error, "response not cached");
    }
    Ok(response)
}

/// What the response cache has for a job's URL, if it may be used. The cache is a help, not a part: its errors are misses.
async fn cached(shared: &Shared, job: &Job, history: &History) -> Option<Response> {
    // What failed before might fail again by what was kept.
    if job.attempts > 0 {
        return None;
    }
    let response = shared.ports.cache.get(&job.url).await.ok().flatten().filter(|response| {
        history.may_use_cached(response)
            && job.spider.bans.by_page(response).is_none()
            // Where a redirect led is looked at each time: another spider may not go there, or has been there.
            && response.redirected_to.is_none()
    });
    metrics::cache_looked_up(response.is_some());
    response
}

/// Asks, and goes on where redirects lead for as long as each one's turn is at once.
async fn fetch(
    shared: &Shared,
    job: &mut Job,
    history: &History,
    mut permit: HostPermit,
) -> Result<Response, Outcome> {
    loop {
        let validators = history.validators_for(job.message.hop.as_ref().map(|hop| &hop.url));
        let target = job.target();
        let domain = HostKey::domain(&target.host());
        let begun = Instant::now();
        let hop = job.message.hop.as_ref();
        let asking = apart::ask(shared, &job.spider, domain, async |fetcher| match job.request() {
            Some(request) => fetcher.ask_for(request, hop).await,
            None => fetcher.ask(target, &validators).await,
        });
        let answer = match asking.await {
            Ok(answer) => answer,
            Err(until) => {
                (job.message.slot, job.message.turn) = (None, None);
                return Err(Outcome::Deferred { until });
            }
        };
        let took = begun.elapsed();
        shared.latencies.note(took);
        metrics::fetched(status(&answer), took);
        let redirects = job.message.hop.as_ref().map_or(0, |hop| hop.count);
        trace::fetched(job.message.trace.as_deref(), target, redirects, status_or_class(&answer), took);
        let ban = trawl_web::ban(&job.spider.bans, &answer);
        let _held = permit.end(ban.is_none() && backoff::is_welcome(&answer));
        if let Some(ban) = ban {
            return Err(backoff::banned(shared, job, ban).await);
        }
        if let Some(until) = proxy_is_away(shared, &job.spider, &answer) {
            (job.message.slot, job.message.turn) = (None, None);
            return Err(Outcome::Deferred { until });
        }
        match answer {
            Ok(Answer::Page(response)) => {
                let redirected_to = job.message.hop.take().map(|hop| hop.url);
                return Ok(Response { redirected_to, ..response });
            }
            Ok(Answer::NotModified) => return Err(Outcome::Skipped(Skip::Unchanged)),
            Ok(Answer::Unread { .. }) => return Err(Outcome::Skipped(Skip::ContentType)),
            Ok(Answer::Redirect(next)) => permit = follow(shared, job, next).await?,
            Err(failure) if failure.is_refusal() => {
                return Err(backoff::left_alone(shared, job, failure).await);
            }
            Err(failure) => return Err(failed(shared, job, failure)),
        }
    }
}

/// The status that a host answered with; of a redirect, one like it.
fn status(answer: &Result<Answer, Failure>) -> Option<u16> {
    match answer {
        Ok(Answer::Page(response)) => Some(response.status),
        Ok(Answer::NotModified) => Some(304),
        Ok(Answer::Redirect(_)) => Some(302),
        Ok(Answer::Unread { status, .. }) => Some(*status),
        Err(failure) => failure.status,
    }
}

/// The same, or why there is none.
fn status_or_class(answer: &Result<Answer, Failure>) -> Result<Option<u16>, &'static str> {
    match answer {
        Err(failure) if failure.status.is_none() => Err(failure.class.as_str()),
        answer => Ok(status(answer)),
    }
}

/// Leave to go on at `next`: it is scheduled like any URL, unless it is one that has been asked for already. Where a request is led, the
/// answer is to that request.
async fn follow(shared: &Shared, job: &mut Job, next: Redirect) -> Result<HostPermit, Outcome> {
    let mut trail = Trail::at(job.url.clone(), job.message.hop.clone(), MAX_REDIRECTS);
    match trail.follow(next.clone(), &job.spider.scope) {
        Ok(()) => {}
        Err(NoPage::Failed(failure)) => return Err(failed(shared, job, failure)),
        Err(NoPage::OutOfScope(_)) => return Err(Outcome::Skipped(Skip::Scope)),
    }
    let message = &mut job.message;
    // One that differs from its own URL only in what makes no other page is asked for nevertheless: servers insist.
    let page = job.spider.spider.urls.canonical(next.target);
    let is_plain = message.work.url().is_some();
    if is_plain && page != job.url && is_known(shared, &message.crawl, &job.url, &page).await {
        return Err(Outcome::Skipped(Skip::Duplicate));
    }
    message.hop = trail.into_hop();
    (message.slot, message.turn, message.until) = (None, None, None);
    schedule::ask(shared, job).await
}

fn failed(shared: &Shared, job: &Job, failure: Failure) -> Outcome {
    debug!(url = %job.url, class = %failure.class, status = failure.status, error = failure.detail, "failed");
    job.failed(&shared.settings.retry, failure)
}

/// What the page gives, and what is to be remembered of it; `None` if it is of a kind that the spider does not read.
async fn read(
    shared: &Shared,
    job: &Job,
    history: &History,
    response: Response,
) -> Result<Option<(Yield, Option<Memory>)>, Outcome> {
    let Job { url: own, message, spider, .. } = job;
    let program = spider.program.as_ref().and_then(Running::reader);
    if program.is_none() && !spider.extractor.reads(&response) {
        return Ok(None);
    }
    let hop = response.redirected_to.clone();
    let landed = hop.clone().filter(|_| job.request().is_none()).map(|url| spider.spider.urls.canonical(url));
    let landed = landed.filter(|url| url != own);
    let base = hop.clone().unwrap_or_else(|| own.clone());
    let begun = Instant::now();
    let reading = match program {
        Some(program) => read_by(program, shared, job, &response).await,
        None => {
            let reading = shared.parser.read(Arc::clone(&spider.extractor), base.clone(), response.clone());
            let extraction = reading.await.map_err(|failure| failed(shared, job, failure));
            extraction.map(Reading::of)
        }
    };
    trace::step(message.trace.as_deref(), "extract", begun.elapsed());
    let Reading { extraction, file, requests, tasks } = reading?;
    if let Some(outcome) = lacking(shared, job, &extraction.missing) {
        return Err(outcome);
    }
    let Extraction { items, links, canonical, left_out, missing } = extraction;
    let missing: Vec<String> = missing.into_iter().map(|missing| missing.field).collect();
    for field in &missing {
        debug!(url = %own, field, "a required field is missing");
    }
    let (mut links, mut beyond) = to_follow(shared, job, landed.as_ref(), links, requests);
    beyond.add(Limit::PageLinks, left_out);
    let form = form(shared, job, canonical).await;
    let mut items: Vec<Item> = match &form {
        Form::Known => Vec::new(),
        Form::Own => items.into_iter().map(|extracted| item(job, own, &response, extracted)).collect(),
        Form::Of(url) => items.into_iter().map(|extracted| item(job, url, &response, extracted)).collect(),
    };
    let stood_for = if let Form::Of(canonical) = form { Some(canonical) } else { landed };
    let landed = stood_for.map(|url| seen_as(url, own));
    spider.empty_fields.look(&spider.spider, &items);
    let in_file = match &file {
        Some(file) if history.compares() => {
            Some(InFile::of(file).await.map_err(|failure| program_failed(shared, job, failure))?)
        }
        _ => None,
    };
    let remark = history.compare(job, &response, &mut items, in_file);
    let like = file.is_some().then(|| {
        let change = History::change(remark.as_ref());
        Item { change, ..item(job, own, &response, Extracted::default()) }
    });
    let keeps_response = job.request().is_none() && spider.sinks.iter().any(|sink| sink.keeps_responses());
    let (status, bytes) = (Some(response.status), response.body.len() as u64);
    let count = items.len() as u64 + file.as_ref().map_or(0, ItemsFile::items);
    metrics::page_read(bytes);
    let page = Page {
        key: message.key(),
        crawl: message.crawl.clone(),
        referrer: message.referrer.clone(),
        items,
        exchange: keeps_response.then(|| {
            let validators = history.validators_for(hop.as_ref());
            (spider.fetcher.request_headers(&base, &validators), response)
        }),
    };
    let ids = Ids::ByPlace(name(job, own).to_owned(), page.items.len());
    let file = file.zip(like).map(|(file, like)| Box::new(FileItems::new(file, &page, like, ids)));
    let page = (keeps_response || !page.items.is_empty()).then_some(page);
    let spider = Arc::clone(spider);
    let (own_tasks, elsewhere) = asked_for(message, tasks);
    links.extend(own_tasks);
    let left_out = beyond;
    let items = count;
    let yielded =
        Yield { spider, page, file, links, elsewhere, left_out, landed, status, items, bytes, missing };
    Ok(Some((yielded, remark)))
}

/// What the spider's program makes of a page. Where that cannot be run, another worker may be able to.
async fn read_by(
    program: &Stream,
    shared: &Shared,
    job: &Job,
    response: &Response,
) -> Result<Reading, Outcome> {
    let Job { url, message: Message { work, crawl, depth, referrer, .. }, spider, .. } = job;
    let referrer = referrer.as_ref().map(ToString::to_string);
    let (urls, log) = (&spider.spider.urls, &shared.log);
    let about = PageAbout { url, work, crawl, depth: *depth, referrer, urls, log };
    let watched = shared.watch.over(&job.message);
    let read = tokio::select! {
        biased;
        read = read_page(program, &about, response) => read,
        () = watched.lost() => return Err(Outcome::SentAgain),
    };
    read.map_err(|unread| match unread {
        Unread::Failed(failure) => program_failed(shared, job, failure),
        Unread::Skipped => Outcome::Skipped(Skip::Handler),
        Unread::NotRun(why) => not_run(shared, spider, &job.message, why),
    })
}

fn program_failed(shared: &Shared, job: &Job, failure: Failure) -> Outcome {
    debug!(url = %job.url, error = failure.detail, "the program failed");
    job.failed_for_now(&job.spider.retry(&shared.settings.retry), failure)
}

/// Whether `page` was seen, to which a redirect or a canonical link of `from` leads.
async fn is_known(shared: &Shared, crawl: &CrawlRef, from: &CanonicalUrl, page: &CanonicalUrl) -> bool {
    let mut names = vec![page.clone(), seen_as(page.clone(), from)];
    names.dedup();
    for name in &names {
        if shared.frontier.has_seen(crawl, name).await {
            return true;
        }
    }
    false
}

/// As what `page` counts as seen when `from` led there. Within a registrable domain that is the page itself. Another site claims
/// no page: only what leads there from elsewhere is not followed twice.
fn seen_as(page: CanonicalUrl, from: &CanonicalUrl) -> CanonicalUrl {
    let is_of_one_site = HostKey::domain(&page.host()) == HostKey::domain(&from.host());
    if is_of_one_site { page } else { page.led_to_from_elsewhere() }
}

/// What becomes of a page that lacks fields without which it counts as none.
fn lacking(shared: &Shared, job: &Job, missing: &[Missing]) -> Option<Outcome> {
    let Missing { field, required } = missing.iter().max_by_key(|missing| missing.required)?;
    let failure = || Failure::new(Class::Missing, format_args!("the page has no `{field}`"));
    match required {
        Required::Retry => Some(job.failed_for_now(&shared.settings.retry, failure())),
        Required::Fail => Some(Outcome::Failed(failure(), Reason::Final)),
        Required::Warn | Required::No => None,
    }
}

/// What a page is beside the one that it names as canonical.
enum Form {
    /// Itself.
    Own,
    /// That page, which was not seen so far: what this one says stands for it.
    Of(CanonicalUrl),
    /// Another form of a page that has its own items.
    Known,
}

/// One that names another page is that page, unless the spider does not go there. The answer to a request is always itself.
async fn form(shared: &Shared, job: &Job, canonical: Option<CanonicalUrl>) -> Form {
    let Job { url, message: Message { crawl, .. }, spider, .. } = job;
    let Some(canonical) = canonical.filter(|canonical| {
        job.request().is_none() && canonical != url && spider.scope.follows(url, canonical, 0)
    }) else {
        return Form::Own;
    };
    match is_known(shared, crawl, url, &canonical).await {
        true => Form::Known,
        false => Form::Of(canonical),
    }
}

/// The name from which the ids of a page's items follow: requests for one URL are several records.
fn name<'a>(job: &'a Job, url: &'a CanonicalUrl) -> &'a str {
    job.request().map_or(url.as_str(), |request| request.key.as_str())
}

/// An item of a job's page, which stands for the page at `url`.
fn item(job: &Job, url: &CanonicalUrl, response: &Response, extracted: Extracted) -> Item {
    let message = &job.message;
    let Extracted { rule, number, fields } = extracted;
    Item {
        id: item_id(&message.crawl.spider, name(job, url), rule.as_deref(), number),
        url: url.to_string(),
        crawl: message.crawl.id.clone(),
        spider: message.crawl.spider.clone(),
        fetched_at: response.fetched_at.to_string(),
        status: response.status,
        depth: message.depth,
        item: rule,
        change: None,
        final_url: Some(response.redirected_to.as_ref().unwrap_or(&job.url))
            .filter(|from| *from != url)
            .map(ToString::to_string),
        fields,
    }
}
