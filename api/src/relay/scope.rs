//! The work to which pages and tasks lead, checked as where a worker finds it.

use trawl_common::frontier::{Task, Work};
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{NewWork, Runner};
use trawl_common::web::url::CanonicalUrl;

use super::session::Held;
use super::spiders::CrawlSpider;

/// Whether work may be taken in.
pub(super) enum Verdict {
    /// As it is here.
    Take(NewWork),
    /// It is outside the bounds of its spider: a page with another version of the file may have led to it.
    Leave,
    /// It belongs to a project to which the runner may hand nothing.
    Denied(ProjectName),
}

/// Decides about work of the same spider.
pub(super) fn link(held: &Held, spider: &CrawlSpider, runner: &Runner, new: NewWork) -> Verdict {
    let is_plain = is_as_made(&held.message.crawl.spider, &new.work);
    let project = match &new.work {
        Work::Task(task) => task.new.project.as_ref().unwrap_or(&held.of_crawl),
        Work::Url(_) | Work::Request(_) => &held.of_crawl,
    };
    if *project != held.project && !runner.access.contains_key(project) {
        return Verdict::Denied(project.clone());
    }
    let is_in_scope = new.work.page().is_none_or(|url| may_ask(spider, url));
    let is_spelled =
        new.written.as_ref().is_none_or(|url| new.work.page().is_some_and(|page| is_spelling(page, url)));
    if !is_plain || !is_in_scope || !is_spelled {
        return Verdict::Leave;
    }
    let depth = new.depth.clamp(held.message.depth, held.message.depth.saturating_add(1));
    Verdict::Take(NewWork { depth, lane: new.lane.of(&new.work), referrer: Some(held.message.key()), ..new })
}

/// Decides about a task of another spider, which may be in a project.
pub(super) fn handed(
    held: &Held,
    to: &SpiderName,
    owner: Option<&ProjectName>,
    runner: &Runner,
    new: NewWork,
) -> Verdict {
    let Work::Task(task) = &new.work else { return Verdict::Leave };
    let project = owner.or(task.new.project.as_ref()).cloned().unwrap_or_default();
    match () {
        () if !runner.access.contains_key(&project) => Verdict::Denied(project),
        () if !is_as_made(to, &new.work) => Verdict::Leave,
        () => {
            let depth = held.message.depth.saturating_add(1);
            let lane = new.lane.of(&new.work);
            Verdict::Take(NewWork { depth, lane, written: None, referrer: Some(held.message.key()), ..new })
        }
    }
}

/// Whether work has the form and the key that trawl gives it: a key of one's own choice would stand for other work.
fn is_as_made(spider: &SpiderName, work: &Work) -> bool {
    match work {
        Work::Url(url) => url.normalised() == *url && CanonicalUrl::parse(url.as_str()).as_ref() == Ok(url),
        Work::Request(request) => {
            let made = Work::of_request(request.url.clone(), request.new.clone());
            request.url.normalised() == request.url && made.is_ok_and(|made| made == *work)
        }
        Work::Task(task) => Task::new(spider, task.new.clone()) == **task,
    }
}

/// Whether the spider requests pages of that host, and URLs of that length.
pub(super) fn may_ask(spider: &CrawlSpider, url: &CanonicalUrl) -> bool {
    spider.scope.takes(url) && spider.spider.allows(&url.host()) && spider.spider.urls.takes(url)
}

/// Whether a URL is requested in this spelling.
fn is_spelling(page: &CanonicalUrl, written: &CanonicalUrl) -> bool {
    written.host() == page.host()
}
