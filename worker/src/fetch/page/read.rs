//! Reads a page by its spider's rules or its program.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;
use tracing::{debug, info, warn};
use trawl_common::frontier::Key;
use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason, Skip};
use trawl_common::metrics;
use trawl_common::ports::{Exchange, Page, PageVisit};
use trawl_common::spider::ItemCounts;
use trawl_common::spider::Required;
use trawl_common::spider::item::Item;
use trawl_common::trace;
use trawl_common::web::login_form::has_password_field;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extracted, Extraction, ListEnd, ListState, Missing, Unfit};
use trawl_handlers::Stream;

use super::failed;
use super::history::RememberedPage;
use super::identity::{Form, form, seen_as};
use super::items::{item, name};
use super::links::to_follow;
use super::rendered::{rendered, rule_once_read, rule_unread};
use crate::claimed::ClaimedUrl;
use crate::claimed::items_file::{FileItems, Ids, InFile};
use crate::claimed::new_work::{asked_for, handed_over};
use crate::claimed::page_output::PageOutput;
use crate::fetch::Fetching;
use crate::programs::{Came, PageAbout, Reading, Unread, read_page};
use crate::schedule::sessions::Visit;

/// Renders the page if its spider wants that, reads it, and returns its results and the update of the page history;
/// `None` if the spider does not read its type.
pub(super) async fn read(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    history: &RememberedPage,
    response: Response,
    visit: Option<&Arc<Visit>>,
) -> Result<Option<(PageOutput, Option<PageVisit>)>, Outcome> {
    if claimed.reader().is_none() && !claimed.spider.extractor.reads(&response) {
        return Ok(None);
    }
    let mut rule = rule_unread(claimed, &response);
    let mut response = match rule {
        Some(rule) => rendered(fetching, claimed, response, rule, visit).await?,
        None => response,
    };
    let mut reading = self::reading(fetching, claimed, claimed.reader(), &response).await?;
    if rule.is_none() {
        rule = rule_once_read(claimed, &response, &reading.extraction);
        if let Some(rule) = rule {
            let (kind, lacked) = (reading.extraction.kind, reading.extraction.missing.len());
            response = rendered(fetching, claimed, response, rule, visit).await?;
            reading = self::reading(fetching, claimed, claimed.reader(), &response).await?;
            if lacked > 0 {
                claimed.spider.gains.note(kind, &claimed.url, reading.extraction.missing.len() < lacked);
            }
        }
    }
    let is_stepped = rule.is_some_and(|rule| !claimed.spider.extractor.steps(rule).is_empty());
    match visit {
        Some(visit) if reading.extraction.lapsed => {
            return Err(fetching.sessions.lapsed(claimed, visit, "`lapsed.selector` finds something"));
        }
        Some(visit) => visit.prove(),
        None => {}
    }
    if let Some(outcome) = lacking(fetching, claimed, &reading.extraction.missing) {
        return Err(outcome);
    }
    let bytes = response.body.len() as u64;
    let is_led = response.redirected_to.is_some() && is_stepped;
    let (output, memory) = given(fetching, claimed, history, response, reading).await?;
    metrics::page_read(bytes);
    // Steps may lead several pages there.
    let landed = output.landed.filter(|_| !is_led);
    Ok(Some((PageOutput { landed, ..output }, memory)))
}

/// Returns the results of a page, with the update of the page history.
pub(super) async fn given(
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    history: &RememberedPage,
    response: Response,
    Reading { extraction, file, requests, tasks }: Reading,
) -> Result<(PageOutput, Option<PageVisit>), Outcome> {
    let ClaimedUrl { url: own, message, spider, .. } = claimed;
    let (own_tasks, mut elsewhere) = asked_for(&fetching.spiders, message, tasks)
        .map_err(|failure| program_failed(fetching, claimed, failure))?;
    let landed = landed(claimed, &response);
    let Extraction {
        items, links, handed, canonical, left_out, missing, required, unfit, path, list, ..
    } = extraction;
    let missing = named(claimed, missing);
    tell_unfit(claimed, &unfit);
    tell_list_end(claimed, list.as_ref());
    let (mut links, mut beyond) = to_follow(fetching, claimed, landed.as_ref(), links, requests);
    beyond.add(Limit::PageLinks, left_out);
    let is_at_limit = list.is_some_and(|list| list.end == Some(ListEnd::Limit));
    beyond.add(Limit::ListPages, u64::from(is_at_limit));
    let handed = handed_over(&fetching.spiders, &fetching.context.log, message, handed, &mut beyond);
    elsewhere.extend(handed.map_err(|failure| failed(fetching, claimed, failure))?);
    let form = form(fetching, claimed, canonical).await?;
    let is_known = matches!(form, Form::Known);
    let mut items = items_as(claimed, &form, &response, path, items);
    let stood_for = if let Form::Of(canonical) = form { Some(canonical) } else { landed };
    spider.empty_fields.look(&spider.spider, &items);
    let in_file = match &file {
        Some(file) if history.compares() => {
            Some(InFile::new(file).await.map_err(|failure| program_failed(fetching, claimed, failure))?)
        }
        _ => None,
    };
    let memory = history.compare(claimed, &response, &mut items, in_file, links.len());
    let like = file.is_some().then(|| {
        let change = RememberedPage::change(memory.as_ref());
        Item { change, ..item(claimed, own, &response, Extracted::default()) }
    });
    let status = Some(response.status).filter(|status| *status > 0);
    let bytes = response.body.len() as u64;
    let counted = ItemCounts::of_page(&spider.spider, &items, file.as_ref().map_or(0, |file| file.items()));
    // The items of a known page are counted with the other one.
    let required = if is_known { BTreeMap::new() } else { required };
    let is_without = counted.is_without && !is_known;
    let is_login = is_without && spider.spider.session.is_none() && has_password_field(&response.body);
    let duplicates = if is_known { 0 } else { spider.recent_items.count_duplicates(&items) };
    let counted = ItemCounts { is_without, is_login, required, duplicates, ..counted }
        .with_change(RememberedPage::change(memory.as_ref()));
    let page = page(claimed, history, items, response);
    let ids = Ids::ByPlace(name(claimed, own).to_owned(), page.items.len());
    let file = file.zip(like).map(|(file, like)| Box::new(FileItems::new(file, &page, like, ids)));
    links.extend(own_tasks);
    let output = PageOutput {
        spider: Arc::clone(spider),
        page: (page.exchange.is_some() || !page.items.is_empty()).then_some(page),
        file,
        links,
        elsewhere,
        left_out: beyond,
        landed: stood_for.map(|url| seen_as(url, own)),
        status,
        items: counted,
        bytes,
        missing,
    };
    Ok((output, memory))
}

/// Returns the final URL of the redirects, in its canonical form for the spider; `None` for a request, whose key does
/// not change.
fn landed(claimed: &ClaimedUrl, response: &Response) -> Option<CanonicalUrl> {
    let hop = response.redirected_to.clone().filter(|_| claimed.request().is_none())?;
    Some(claimed.spider.spider.urls.canonical(hop)).filter(|url| *url != claimed.url)
}

/// Returns the names of the fields that a page lacks.
fn named(claimed: &ClaimedUrl, missing: Vec<Missing>) -> Vec<String> {
    let missing: Vec<String> = missing.into_iter().map(|missing| missing.field).collect();
    for field in &missing {
        debug!(url = %claimed.url, field, "a required field is missing");
    }
    missing
}

/// Logs the values that are not kept as they were found. That a part is missing shows nowhere else.
fn tell_unfit(claimed: &ClaimedUrl, unfit: &[Unfit]) {
    for Unfit { field, value, reason, is_cut, .. } in unfit {
        match is_cut {
            true => warn!(url = %claimed.url, field, "a value is cut: {reason}"),
            false => debug!(url = %claimed.url, field, value, "a value is left out: {reason}"),
        }
    }
}

/// Logs where and why a list ends.
fn tell_list_end(claimed: &ClaimedUrl, list: Option<&ListState>) {
    if let Some(ListState { pages, end: Some(end) }) = list {
        info!(url = %claimed.url, crawl = %claimed.message.crawl.id, pages, "a list ends: {end}");
    }
}

/// Returns the items of a page in this form. A known page has none.
fn items_as(
    claimed: &ClaimedUrl,
    form: &Form,
    response: &Response,
    path: Option<Vec<String>>,
    extracted: Vec<Extracted>,
) -> Vec<Item> {
    let url = match form {
        Form::Known => return Vec::new(),
        Form::Own => &claimed.url,
        Form::Of(url) => url,
    };
    let referrer = claimed.message.referrer.as_ref().filter(|_| path.is_some()).map(Key::page_or_task);
    let of_page = |extracted| Item {
        path: path.clone(),
        referrer: referrer.clone(),
        ..item(claimed, url, response, extracted)
    };
    extracted.into_iter().map(of_page).collect()
}

/// Returns the page for the sinks: its items, and the response if a sink keeps responses.
fn page(claimed: &ClaimedUrl, history: &RememberedPage, items: Vec<Item>, response: Response) -> Page {
    let ClaimedUrl { url, message, spider, .. } = claimed;
    let keeps_response =
        claimed.own_request().is_none() && spider.sinks.iter().any(|sink| sink.keeps_responses());
    let exchange = keeps_response.then(|| {
        let hop = response.redirected_to.as_ref();
        let validators = history.validators_for(hop);
        let request = spider.fetcher.request_headers(hop.unwrap_or(url), &validators);
        let headers = match &spider.session {
            None => response.headers.clone(),
            // What it sets may open somebody's account to whoever reads the archive.
            Some(_) => response.headers.iter().filter(|(name, _)| *name != "set-cookie").collect(),
        };
        let data = claimed.request().and_then(|request| request.new.data.clone());
        Exchange { request, response: Response { headers, ..response }, depth: message.depth, data }
    });
    Page { exchange, ..Page::new(message, items) }
}

/// Reads a page with the spider's program, or else by its rules.
async fn reading(
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    program: Option<&Stream>,
    response: &Response,
) -> Result<Reading, Outcome> {
    let begun = Instant::now();
    let reading = match program {
        Some(program) => read_by(program, fetching, claimed, response).await,
        None => {
            let extractor = Arc::clone(&claimed.spider.extractor);
            let base = response.redirected_to.clone().unwrap_or_else(|| claimed.url.clone());
            let request = claimed.message.work.request().cloned();
            let extraction = fetching.parser.read(extractor, base, response.clone(), request).await;
            extraction.map(Reading::new).map_err(|failure| failed(fetching, claimed, failure))
        }
    };
    trace::step(claimed.message.trace.as_deref(), "extract", begun.elapsed());
    reading
}

/// Reads a page with the spider's program.
async fn read_by(
    program: &Stream,
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    response: &Response,
) -> Result<Reading, Outcome> {
    let (landed, came) = (response.redirected_to.as_ref(), Came::Response(response));
    ask_program(program, fetching, claimed, landed, came).await?.map_err(|unread| match unread {
        Unread::Failed(failure) | Unread::SaysFailed(failure) => program_failed(fetching, claimed, failure),
        Unread::Skipped => Outcome::Skipped(Skip::Handler),
        Unread::NotRun(why) => not_run(fetching, claimed, why),
    })
}

/// Passes the response or failure of a page to the spider's program, as long as the page is this worker's.
pub(super) async fn ask_program(
    program: &Stream,
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    landed: Option<&CanonicalUrl>,
    came: Came<'_>,
) -> Result<Result<Reading, Unread>, Outcome> {
    let ClaimedUrl { url, message: Message { work, crawl, depth, referrer, .. }, spider, .. } = claimed;
    let referrer = referrer.as_ref().map(ToString::to_string);
    let (urls, log) = (&spider.spider.urls, &fetching.context.log);
    let about = PageAbout { url, work, landed, crawl, depth: *depth, referrer, urls, log };
    let watched = fetching.watch.over(&claimed.message);
    tokio::select! {
        biased;
        read = read_page(program, &about, came) => Ok(read),
        () = watched.lost() => Err(Outcome::Republish),
    }
}

/// Returns the outcome of a page whose spider's program cannot be run here.
pub(super) fn not_run(fetching: &Fetching, claimed: &ClaimedUrl, why: String) -> Outcome {
    fetching.scheduling.idle_reasons.cannot_run(&fetching.context.health, &claimed.message, why)
}

/// Returns the outcome of a page that the spider's program failed at.
pub(super) fn program_failed(fetching: &Fetching, claimed: &ClaimedUrl, failure: Failure) -> Outcome {
    debug!(url = %claimed.url, error = failure.detail, "the program failed");
    claimed.program_failed(&fetching.context.settings.retry, failure)
}

/// Returns the outcome of a page without required fields; `None` if they are optional.
fn lacking(fetching: &Fetching, claimed: &ClaimedUrl, missing: &[Missing]) -> Option<Outcome> {
    let Missing { field, required } = missing.iter().max_by_key(|missing| missing.required)?;
    let failure = || Failure::new(Class::Missing, format_args!("the page has no `{field}`"));
    match required {
        Required::Retry => Some(claimed.failed_for_now(&fetching.context.settings.retry, failure())),
        Required::Fail => Some(Outcome::Failed(failure(), Reason::Final)),
        Required::Warn | Required::No => None,
    }
}
