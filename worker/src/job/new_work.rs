//! The work to which a page or a task leads.

use trawl_common::frontier::Task;
use trawl_common::frontier::message::Message;
use trawl_common::names::SpiderName;
use trawl_common::ports::NewWork;
use trawl_common::task::NewTask;

/// Returns the tasks that a task or a page requests: those for its own spider, and those for others.
pub(crate) fn asked_for(
    message: &Message,
    tasks: Vec<NewTask>,
) -> (Vec<NewWork>, Vec<(SpiderName, NewWork)>) {
    let (mut own, mut elsewhere) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.spider.clone().filter(|spider| *spider != message.crawl.spider) {
            None => own.push(child(message, &message.crawl.spider, task)),
            Some(spider) => {
                let child = child(message, &spider, task);
                elsewhere.push((spider, child));
            }
        }
    }
    (own, elsewhere)
}

/// Returns a task of a spider that another task requests.
fn child(message: &Message, spider: &SpiderName, task: NewTask) -> NewWork {
    led_to(message, NewWork::task(Task::new(spider, task)))
}

/// Returns work with the task or page that led to it.
pub(crate) fn led_to(message: &Message, new: NewWork) -> NewWork {
    NewWork { depth: message.depth.saturating_add(1), referrer: Some(message.key()), ..new }
}
