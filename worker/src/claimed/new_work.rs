//! The work to which a page or a task leads.

use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::frontier::route::{self, Hints};
use trawl_common::frontier::{Task, Work};
use trawl_common::names::SpiderName;
use trawl_common::ports::NewWork;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

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

/// Returns work with the task or page that led to it.
fn led_to(message: &Message, new: NewWork) -> NewWork {
    NewWork { depth: message.depth.saturating_add(1), referrer: Some(message.key()), ..new }
}
