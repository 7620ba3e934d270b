//! The tasks that wait, run, are parked or failed.

use askama::Template;
use serde::Deserialize;
use trawl_common::task_report::TaskPlace;

use super::filled::{self, Spot};
use crate::address::address;
use crate::answers::{MAX_LISTED_RECIPE, Task, Tasks};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, all_written, text_of, written};
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;
use crate::visit::Visit;

/// The number of tasks on one page. The API's pages are larger, and as the store has them.
const PAGE_SIZE: usize = 100;

/// Maximum number of API pages requested to fill one page.
const MAX_REQUESTS: usize = 4;

/// A page whose recipes have more bytes than this in total does not update itself.
const MAX_LIVE_BYTES: u64 = 1024 * 1024;

/// The filter of the list. An empty field matches everything.
#[derive(Deserialize)]
pub(crate) struct Listing {
    crawl: Option<String>,
    spider: Option<String>,
    place: Option<String>,
    /// The cursor of the API's list.
    cursor: Option<String>,
    /// The number of tasks at the cursor that were shown already.
    skip: Option<String>,
}

#[derive(Template)]
#[template(path = "tasks.html")]
struct TasksPage {
    page: Page,
    listing: Listing,
    /// The choices of a state: its name, its address, and whether it is selected.
    choices: Vec<(&'static str, String, bool)>,
    tasks: Vec<Task>,
    is_first: bool,
    next: Option<String>,
}

impl Listing {
    /// The non-empty fields other than the state.
    fn of_crawls(&self) -> Vec<(&'static str, &str)> {
        all_written([("crawl", &self.crawl), ("spider", &self.spider)])
    }

    fn place(&self) -> Option<&str> {
        written(&self.place)
    }

    fn is_of_failed(&self) -> bool {
        self.place() == Some("failed")
    }

    fn is_empty(&self) -> bool {
        self.of_crawls().is_empty() && self.place().is_none()
    }

    /// The value of a field for its input.
    fn shown(&self, name: &str) -> Text {
        text_of(&self.of_crawls(), name).into()
    }

    /// The address of the page that starts at a position; of the first page, without one.
    fn path(&self, from: Option<Spot>) -> String {
        let all = self.of_crawls().into_iter().chain(self.place().map(|place| ("place", place)));
        let all = all.map(|(name, value)| (name, value.to_owned()));
        address("/tasks", all.chain(from.into_iter().flat_map(Spot::fields)))
    }

    /// The address of the first page.
    fn first(&self) -> String {
        self.path(None)
    }

    /// The address of the page that replays the dead letters of these tasks.
    fn replay(&self) -> String {
        address("/dead-letters/replay", self.of_crawls())
    }

    /// The address of the page that cancels all unfinished tasks of the selected crawl; `None` if no crawl is
    /// selected.
    fn cancel(&self) -> Option<String> {
        let crawl = written(&self.crawl)?;
        Some(address("/tasks/cancel", [("crawl", crawl)]))
    }

    fn call(&self) -> Call {
        let call = Call::get(&["tasks"]).with("recipe_bytes", &(MAX_LISTED_RECIPE + 1).to_string());
        self.of_crawls().into_iter().fold(call, |call, (name, value)| call.with(name, value))
    }

    /// Whether the first page, with these tasks, is cheap enough to update itself. Finding tasks that are
    /// parked, or that wait among many parked ones, takes a search through all of them; and each recipe is
    /// read in full, however little of it is shown.
    fn is_cheap(&self, tasks: &[Task]) -> bool {
        let is_found_at_once = self.place().is_none_or(|place| place == "running" || place == "failed");
        let bytes: u64 = tasks.iter().map(|task| task.recipe_bytes.0).sum();
        is_found_at_once && bytes <= MAX_LIVE_BYTES
    }
}

pub(crate) async fn list(visit: Visit, Asked(listing): Asked<Listing>) -> Answer {
    let from = Spot::new(listing.cursor.clone(), &listing.skip);
    let is_first = from.is_first();
    let ask = async |cursor: Option<String>| {
        let call = listing.call().with_any("place", listing.place()).with_any("cursor", cursor.as_deref());
        let Tasks { tasks, next } = visit.ask(call).await?;
        Ok((tasks, next))
    };
    let (mut tasks, next) = filled::fill(from, PAGE_SIZE, MAX_REQUESTS, ask).await?;
    if is_first && listing.place().is_none() {
        tasks = running_first(&visit, &listing, tasks).await?;
    }
    html(&TasksPage {
        page: Page::new("Tasks", Here::Tasks, &visit).live(is_first && listing.is_cheap(&tasks)),
        choices: choices(&listing.of_crawls(), listing.place()),
        tasks,
        is_first,
        next: next.map(|next| listing.path(Some(next))),
        listing,
    })
}

/// Returns the choices of a list of tasks, the list of ended ones among them: the name of each, its address for these
/// crawls, and whether it is selected.
pub(super) fn choices(of_crawls: &[(&str, &str)], chosen: Option<&str>) -> Vec<(&'static str, String, bool)> {
    let choice = |name: &'static str| {
        let place = (name != "all").then_some(name);
        let fields = of_crawls.iter().copied();
        let path = match name {
            "ended" => address("/tasks/ended", fields),
            _ => address("/tasks", fields.chain(place.map(|place| ("place", place)))),
        };
        (name, path, place == chosen)
    };
    ["all"].into_iter().chain(TaskPlace::NAMES.iter().copied()).chain(["ended"]).map(choice).collect()
}

/// Returns these tasks after all running ones.
async fn running_first(visit: &Visit, listing: &Listing, others: Vec<Task>) -> Result<Vec<Task>, Failure> {
    let Tasks { tasks, .. } = visit.ask(listing.call().with("place", "running")).await?;
    let is_other =
        |other: &Task| !tasks.iter().any(|task| (&task.task, &task.crawl) == (&other.task, &other.crawl));
    let others: Vec<Task> = others.into_iter().filter(is_other).collect();
    Ok(tasks.into_iter().chain(others).collect())
}
