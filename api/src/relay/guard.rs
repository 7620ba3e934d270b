//! The outcomes that a runner reports, rebuilt from the messages that the API keeps.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::names::{ProjectName, WorkerId};
use trawl_common::ports::{
    self, Claim, Completion, Disposition, Finish, Heartbeat, NewWork, Page, PageVisit, Runner, Settlement,
};
use trawl_common::project::{Grant, GrantedSecret};
use trawl_common::relay::Outcome;
use trawl_common::spider::ItemCounts;
use trawl_common::spider::item::Item;
use trawl_common::spider::page_history::Visited;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use super::projects::Owners;
use super::scope::{self, Verdict};
use super::session::Held;
use super::spiders::CrawlSpider;

/// Maximum length of the text of an error, in bytes.
const MAX_ERROR: usize = 1024;

/// Maximum number of names in counts and reports of one page.
const MAX_NAMES: usize = 10_000;

/// Maximum number of names in a heartbeat.
const MAX_REPORTED: usize = 200;

/// Maximum number of links of a page.
const MAX_LINKS: usize = 20_000;

/// Maximum size of a page or a file in bytes, and of any other count. Sums of as many ends as there can be stay countable.
const MAX_COUNT: u64 = 1 << 40;

/// Maximum time for which work is put aside.
const MAX_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The reason why a call is not carried out.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A port failed.
    Port(ports::Error),
    /// The runner may not do this.
    Forbidden(&'static str),
}

impl From<ports::Error> for Refusal {
    fn from(error: ports::Error) -> Self {
        Self::Port(error)
    }
}

impl From<ports::Fatal> for Refusal {
    fn from(ports::Fatal(error): ports::Fatal) -> Self {
        Self::Port(error)
    }
}

/// Returns the settlement of work that a runner holds: by the message that is kept here, with what its spider allows.
pub(super) fn settlement(
    held: Held,
    spider: &CrawlSpider,
    runner: &Runner,
    owners: &Owners,
    worker: &WorkerId,
    Outcome { progress, disposition, .. }: Outcome,
) -> Result<Settlement, Refusal> {
    if progress.target().is_some_and(|url| !scope::may_ask(spider, url) && held.message.target() != Some(url))
    {
        return Err(Refusal::Forbidden("a redirect leads out of the spider's bounds"));
    }
    let message = progress.of(held.message.clone());
    let latest = UnixMs::now().plus(MAX_WAIT);
    let disposition = match disposition {
        Disposition::Finish(completion) => Disposition::Finish(Box::new(self::completion(
            &held,
            &message,
            spider,
            runner,
            owners,
            worker,
            *completion,
        )?)),
        Disposition::Retry { until } => Disposition::Retry { until: until.min(latest) },
        Disposition::Snooze { until } => Disposition::Snooze { until: until.min(latest) },
        Disposition::Requeue { until } => Disposition::Requeue { until: until.min(latest) },
        Disposition::Republish => Disposition::Republish,
        Disposition::Release => Disposition::Release,
    };
    Ok(Settlement { message, disposition })
}

fn completion(
    held: &Held,
    message: &Message,
    spider: &CrawlSpider,
    runner: &Runner,
    owners: &Owners,
    worker: &WorkerId,
    Completion { finish, dead_letter, links, elsewhere, memory }: Completion,
) -> Result<Completion, Refusal> {
    if finish.terminal == Terminal::Cancelled {
        return Err(Refusal::Forbidden("a crawl is cancelled by people"));
    }
    if links.len() + elsewhere.len() > MAX_LINKS || is_excessive(&finish) {
        return Err(Refusal::Forbidden(
            "a page has no more than 20,000 links, 10,000 fields, and 2^40 of anything",
        ));
    }
    let cause = |cause: Cause| Cause {
        error: printable(&cause.error, MAX_ERROR),
        worker: Some(worker.clone()),
        failed_at: UnixMs::now(),
        ..cause
    };
    let entry = |entry: DeadLetterEntry| DeadLetterEntry::from_message(message, cause(entry.cause));
    let landed = finish.landed.filter(|url| scope::may_ask(spider, url));
    let (claim, note) = (Claim::new(message), finish.note.map(entry));
    let finish = Finish { claim, note, landed, ..finish };
    let mut completion = Completion::new(finish);
    completion.dead_letter = dead_letter.map(cause);
    completion.memory = memory.map(|visit| remembered(message, visit));
    for new in links {
        match scope::link(held, spider, runner, new) {
            Verdict::Take(new) => completion.links.push(new),
            Verdict::Leave => {}
            Verdict::Denied(project) => return Ok(denied(message, runner, worker, &project)),
        }
    }
    for (to, new) in elsewhere {
        match scope::handed(held, &to, owners.get(&to), runner, new) {
            Verdict::Take(new) => completion.elsewhere.push((to, new)),
            Verdict::Leave => {}
            Verdict::Denied(project) => return Ok(denied(message, runner, worker, &project)),
        }
    }
    Ok(completion)
}

/// Returns the end of work that leads to a project to which its runner may hand nothing: people see it among the failed
/// ones, and send it again when they have allowed it.
fn denied(message: &Message, runner: &Runner, worker: &WorkerId, project: &ProjectName) -> Completion {
    let name = &runner.name;
    let error = format!(
        "it hands work to the project {project}, which the runner {name} may not: trawl runner approve {name} --project {project} --submit"
    );
    let cause = Cause {
        class: Some(Class::Handler),
        worker: Some(worker.clone()),
        attempts: 1,
        ..Cause::new(Reason::Final, error, UnixMs::now())
    };
    let finish = Finish::new(Claim::new(message), Terminal::Failed);
    Completion::new(finish).with_dead_letter(message, cause)
}

/// Whether an end has more names than any page, or counts more than there can be.
fn is_excessive(Finish { missing, items, bytes, left_out, .. }: &Finish) -> bool {
    let ItemCounts { by_kind, with_field, required, compared, duplicates, .. } = items;
    let names = missing.iter().chain(by_kind.keys()).chain(with_field.keys()).chain(required.keys());
    let most = [missing.len(), by_kind.len(), with_field.len(), required.len()].into_iter().max();
    let compared = compared.iter().map(|(_, number)| number);
    let counts = by_kind.values().chain(with_field.values()).chain(compared).chain([duplicates, bytes]);
    most.is_some_and(|most| most > MAX_NAMES)
        || names.into_iter().any(|name| name.len() > MAX_ERROR)
        || counts.copied().chain(left_out.iter().map(|(_, links)| links)).any(|count| count > MAX_COUNT)
}

/// Returns what is to be remembered of a page.
fn remembered(message: &Message, visit: PageVisit) -> PageVisit {
    match visit {
        PageVisit::Visited(visited) => {
            let fetched_at = visited.fetched_at.min(UnixMs::now());
            PageVisit::Visited(Visited { fetched_at, depth: message.depth, ..visited })
        }
        PageVisit::Gone => PageVisit::Gone,
    }
}

/// Returns the output of work that a runner holds.
pub(super) fn page(held: &Held, page: Page) -> Result<Page, Refusal> {
    let crawl = &held.message.crawl;
    if page.items.iter().any(|item| item.spider != crawl.spider || item.crawl != crawl.id) {
        return Err(Refusal::Forbidden("an item is of another spider or another crawl"));
    }
    if !page.items.iter().all(|item| is_plausible(held, item)) {
        return Err(Refusal::Forbidden(
            "an item is of another page, or has no id, time or status of an item",
        ));
    }
    let items = page.items.into_iter().map(|mut item| {
        item.depth = held.message.depth;
        item
    });
    Ok(Page { items: items.collect(), ..Page::new(&held.message, Vec::new()) })
}

/// Whether an item may be one of the work that is held: it is of its page, or of one that the spider may ask, which stands
/// for it.
fn is_plausible(held: &Held, Item { id, url, fetched_at, status, final_url, .. }: &Item) -> bool {
    let is_own = |url: &str| match held.message.work.page() {
        Some(page) => page.as_str() == url || url.parse().is_ok_and(|url| scope::may_ask(&held.spider, &url)),
        None => held.message.work.as_str() == url,
    };
    let is_id = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_page = |url: &String| url.parse::<CanonicalUrl>().is_ok();
    is_id
        && is_own(url)
        && *status < 1000
        && fetched_at.parse::<UnixMs>().is_ok()
        && final_url.as_ref().is_none_or(is_page)
}

/// Returns what a runner is told of a project's grant.
pub(super) fn grant(runner: &Runner, grant: Grant) -> Grant {
    match (&grant, runner.is_assigned(&grant.project)) {
        (Grant { secret: GrantedSecret::None, wanted: None, .. }, _) | (_, true) => grant,
        (_, false) => {
            let Grant { project, .. } = grant;
            let name = &runner.name;
            let why = format!(
                "the runner {name} may not read what the project {project} has: trawl runner approve {name} --project {project}"
            );
            Grant { project, secret: GrantedSecret::Denied(why), wanted: None }
        }
    }
}

/// Returns the heartbeat of a runner, under the name of its worker.
pub(super) fn beat(worker: &WorkerId, held: usize, beat: Heartbeat) -> Heartbeat {
    let text = |text: String| printable(&text, MAX_ERROR);
    fn few<K: Ord, V, W>(map: BTreeMap<K, V>, of: impl Fn(V) -> W) -> BTreeMap<K, W> {
        map.into_iter().take(MAX_REPORTED).map(|(key, value)| (key, of(value))).collect()
    }
    let running = beat.running.into_iter().filter(|(key, _)| key.len() <= MAX_ERROR).collect();
    Heartbeat {
        worker: worker.clone(),
        version: printable(&beat.version, 64).into(),
        in_flight: held,
        pages_per_second: if beat.pages_per_second.is_finite() {
            beat.pages_per_second.max(0.0)
        } else {
            0.0
        },
        latency: beat.latency,
        trouble: beat.trouble.map(text),
        lacks: few(beat.lacks, text),
        troubles: few(beat.troubles, text),
        running: few(running, |since| since),
        programs: few(beat.programs, |version| version),
        outdated: few(beat.outdated, text),
        behind: few(beat.behind, |waiting| waiting),
        browsers: beat.browsers,
    }
}

/// Returns the positions of the named links that the frontier knows.
pub(super) fn positions(named: &[NewWork], known: &[NewWork]) -> Vec<usize> {
    let known: HashSet<&str> = known.iter().map(|new| new.work.as_str()).collect();
    (0..named.len()).filter(|&at| known.contains(named[at].work.as_str())).collect()
}
