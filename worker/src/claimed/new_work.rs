//! The work to which a page or a task leads.

use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::frontier::route::{self, Hints};
use trawl_common::frontier::{Task, Work};
use trawl_common::names::SpiderName;
use trawl_common::ports::NewWork;
use trawl_common::request::NewRequest;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::Link;

use crate::programs::say_refused;
use crate::spiders::{LoadedSpider, Spiders};

/// Own tasks, and those for other spiders.
type AskedFor = (Vec<NewWork>, Vec<(SpiderName, NewWork)>);

/// Returns the tasks that a task or a page requests: those for its own spider, and those for others. Fails if these are
/// too many that are not here.
pub(crate) fn asked_for(
    spiders: &Spiders,
    message: &Message,
    tasks: Vec<NewTask>,
) -> Result<AskedFor, Failure> {
    let (mut own, mut elsewhere) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.spider.clone().filter(|spider| *spider != message.crawl.spider) {
            None => own.push(child(message, &message.crawl.spider, task)),
            Some(spider) => {
                let accepted = spiders.accept_handed(&spider, &message.crawl.spider);
                accepted.map_err(|error| Failure::new(Class::Handler, error))?;
                let child = child(message, &spider, task);
                elsewhere.push((spider, child));
            }
        }
    }
    Ok((own, elsewhere))
}

/// Returns a task of a spider that another task requests.
fn child(message: &Message, spider: &SpiderName, task: NewTask) -> NewWork {
    led_to(message, NewWork::task(Task::new(spider, task)))
}

/// Returns a page to which a page or a task of this spider led, with the lane and the deadline that its routes give it.
pub(crate) fn routed(message: &Message, spider: &LoadedSpider, work: Work, url: &CanonicalUrl) -> NewWork {
    let routed = route::route(&spider.route, url, Hints::default());
    let deadline = routed.ttl.map(|ttl| UnixMs::now().plus(ttl));
    led_to(message, NewWork { deadline, ..NewWork::new(work, routed.lane) })
}

/// Returns how a page is admitted to which a task or a page of another spider led, if this spider may request it.
pub(crate) fn allowed(
    message: &Message,
    spider: &LoadedSpider,
    work: Work,
    url: &CanonicalUrl,
    left_out: &mut LeftOut,
) -> Option<NewWork> {
    if !spider.spider.allows(&url.host()) {
        return None;
    }
    if !spider.spider.urls.takes(url) {
        left_out.add(Limit::UrlLength, 1);
        return None;
    }
    Some(routed(message, spider, work, url))
}

/// Returns the pages that `[[hand_over]]` gives to other spiders, in the form that these have for their URLs.
///
/// # Errors
/// Fails if one of these spiders is not here.
pub(crate) fn handed_over(
    spiders: &Spiders,
    log: &LogWriter,
    message: &Message,
    links: Vec<(SpiderName, Link)>,
    left_out: &mut LeftOut,
) -> Result<Vec<(SpiderName, NewWork)>, Failure> {
    let (mut handed, mut refused) = (Vec::new(), Vec::new());
    for (name, Link { url, written, request, .. }) in links {
        let other = spiders.get(&name).filter(|_| spiders.is_for_strangers(&name));
        let missing = || {
            let why =
                format_args!("hand_over `{name}`: this worker has no such spider, or its file has mistakes");
            Failure::new(Class::Handler, why)
        };
        let other = other.ok_or_else(missing)?;
        let written = written.unwrap_or(url);
        let url = other.spider.urls.canonical(written.clone());
        let request = request.map_or_else(|| NewRequest::get(url.as_str()), |request| *request);
        let Ok(work) = Work::of_request(url.clone(), request) else {
            left_out.add(Limit::UrlLength, 1);
            continue;
        };
        let spelling = Some(written).filter(|written| *written != url);
        match allowed(message, &other, work, &url, left_out) {
            Some(new) => handed.push((name, NewWork { written: spelling, ..new })),
            None => refused.push(url),
        }
    }
    say_refused(log, message, &refused);
    Ok(handed)
}

/// Returns work with the task or page that led to it.
fn led_to(message: &Message, new: NewWork) -> NewWork {
    NewWork { depth: message.depth.saturating_add(1), referrer: Some(message.key()), ..new }
}
