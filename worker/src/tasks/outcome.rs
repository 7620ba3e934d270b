//! Converts the results of a task into its outcome: its items, its requests, and whether it is retried.

use std::sync::Arc;

use tracing::warn;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::limit::LeftOut;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::frontier::retry;
use trawl_common::frontier::{Key, Task, Work};
use trawl_common::ports::{Claimed, NewWork, Page};
use trawl_common::request::NewRequest;
use trawl_common::settings::{Retry, Settings};
use trawl_common::spider::ItemCounts;
use trawl_common::spider::item::{Item, task_item_id};
use trawl_common::task::TaskView;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};
use trawl_handlers::ItemsFile;

use super::Tasks;
use super::runner::{Gave, Ran};
use crate::claimed::items_file::{Contents, Equals, FileItems, Ids, as_text};
use crate::claimed::new_work::{allowed, asked_for};
use crate::claimed::page_output::PageOutput;
use crate::claimed::settlement::Settlement;
use crate::context::Context;
use crate::programs::say_refused;
use crate::spiders::{LoadedSpider, Spiders};

type Fields = serde_json::Map<String, serde_json::Value>;

/// Returns the view of a task for its program.
pub(super) fn view(claimed: &Claimed, spider: &LoadedSpider, task: &Task, settings: &Settings) -> TaskView {
    TaskView {
        id: task.key.id(),
        project: spider.project().or(task.new.project.as_ref()).cloned().unwrap_or_default(),
        spider: spider.spider.name.clone(),
        crawl: claimed.message.crawl.id.clone(),
        recipe: task.new.recipe.clone(),
        attempt: claimed.attempts + 1,
        max_retries: retry_policy(spider, task, settings).max,
        priority: task.new.priority,
    }
}

/// Returns the retry policy of a task.
fn retry_policy(spider: &LoadedSpider, task: &Task, settings: &Settings) -> Retry {
    spider.spider.program_retry(&settings.retry).with_max(task.new.retries)
}

/// Returns the settlement of a task that was run.
pub(super) fn settlement(
    tasks: &Tasks,
    claimed: &Claimed,
    spider: Arc<LoadedSpider>,
    task: &Task,
    ran: Ran,
) -> Settlement {
    let Context { settings, health, log, .. } = &*tasks.context;
    let policy = retry_policy(&spider, task, settings);
    let done = match ran {
        Ran::Done(gave) => output(tasks.spiders.all(), log, &claimed.message, spider, gave),
        Ran::Failed(failure) => Err(failure),
        Ran::Skipped => return Settlement::of_task(claimed.clone(), Err(Outcome::Skipped(Skip::Handler))),
        Ran::NotRun(why) => {
            let outcome = tasks.idle_reasons.cannot_run(health, &claimed.message, why);
            return Settlement::of_task(claimed.clone(), Err(outcome));
        }
    };
    // Whatever the class: the program knows best whether another try makes sense.
    let (attempts, now) = (claimed.attempts + 1, UnixMs::now());
    let result = done.map_err(|failure| retry::again(&policy, failure, attempts, now, rand::random()));
    Settlement::of_task(claimed.clone(), result)
}

/// Returns the results of a finished task, unless they cannot be taken.
fn output(
    spiders: &Spiders,
    log: &LogWriter,
    message: &Message,
    spider: Arc<LoadedSpider>,
    Gave { items, file, tasks, urls }: Gave,
) -> Result<PageOutput, Failure> {
    let key = message.key();
    let (mut left_out, mut refused) = (LeftOut::default(), Vec::new());
    let (mut links, elsewhere) = asked_for(spiders, message, tasks)?;
    for new in urls {
        let written = spider.spider.urls.spelling(&new.url);
        let Some((work, url)) = page(message, &spider, new) else { continue };
        let is_request = work.request().is_some();
        match allowed(message, &spider, work, &url, &mut left_out) {
            Some(link) => links.push(NewWork { written, ..link }),
            None if is_request => refused.push(url),
            None => {}
        }
    }
    say_refused(log, message, &refused);
    let mut equals = Equals::default();
    let items = items_of(message, &key, items, &mut equals);
    let in_file = file.as_ref().map_or(0, ItemsFile::items);
    let (has_own, counted) = (!items.is_empty(), ItemCounts::new(&spider.spider, &items, in_file));
    let counted = ItemCounts { duplicates: spider.recent_items.count_duplicates(&items), ..counted };
    let page = Page::new(message, items);
    let file = file.map(|file| {
        let (like, ids) = (item(message, &page.key), Ids::ByContent(Contents::new(equals, &file)));
        Box::new(FileItems::new(file, &page, like, ids))
    });
    Ok(PageOutput {
        spider,
        page: has_own.then_some(page),
        file,
        links,
        elsewhere,
        left_out,
        landed: None,
        status: None,
        items: counted,
        bytes: 0,
        missing: Vec::new(),
    })
}

/// Returns a page that a task requests, and its URL.
fn page(message: &Message, spider: &LoadedSpider, new: NewRequest) -> Option<(Work, CanonicalUrl)> {
    let written = printable(&new.url, MAX_URL_BYTES);
    let url = CanonicalUrl::parse(&new.url).map(|url| spider.spider.urls.canonical(url));
    let work = url.and_then(|url| Ok((Work::of_request(url.clone(), new)?, url)));
    work.inspect_err(|error| {
        warn!(task = %message.work, url = written, %error, "a task asks for what is no URL");
    })
    .ok()
}

/// Returns the items of a program, each with its id.
fn items_of(message: &Message, key: &Key, output: Vec<Fields>, equals: &mut Equals) -> Vec<Item> {
    let numbered = output.into_iter().map(|fields| {
        let said = as_text(&fields);
        let id = task_item_id(&message.crawl.spider, key.as_str(), &said, equals.before(&said));
        Item { id, fields, ..item(message, key) }
    });
    numbered.collect()
}

/// Returns an item without its id and its fields.
fn item(message: &Message, key: &Key) -> Item {
    Item {
        id: String::new(),
        url: key.to_string(),
        crawl: message.crawl.id.clone(),
        spider: message.crawl.spider.clone(),
        fetched_at: UnixMs::now().to_string(),
        // There was no response of a server.
        status: 0,
        depth: message.depth,
        item: None,
        change: None,
        final_url: None,
        referrer: None,
        path: None,
        fields: Fields::new(),
    }
}
