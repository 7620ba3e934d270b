//! Trying a spider on one page.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::{Origin, Version};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Attempt, Examined, Extracted, JudgedLink, NotTried, RobotsOutcome, Tried, Untried};
use utoipa::ToSchema;

use super::spiders::Mistake;
use crate::Api;
use crate::extract;
use crate::given_url::parsed;
use crate::identity::Identity;
use crate::problem::{Kind, Problem};
use crate::spiders::not_given;
use crate::threads::on_a_thread_apart;

/// The number of bytes of items after which a response has no more of them.
const MAX_ITEM_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of items, and of links, in a response.
const MAX_ITEMS: usize = 1000;

/// A spider to try, given by its text or by the name of a known one, and the page
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTrial {
    /// The page
    url: String,
    /// The text of the spider's file; by default that of a spider that is deployed or has a file beside the
    /// API
    text: Option<String>,
    /// The spider's name
    #[serde(default)]
    #[schema(value_type = String, default = "default")]
    spider: SpiderName,
    /// Without a text, the spider's project; by default `default`
    #[schema(value_type = Option<String>)]
    project: Option<ProjectName>,
    /// Without a text, the version of its project; by default the latest
    #[schema(value_type = Option<String>)]
    version: Option<Version>,
    /// Values for its arguments
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    arguments: Arguments,
}

/// The result of trying a spider on a page
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Trial {
    spider: String,
    url: String,
    /// The mistakes in the spider, from the top. If there are any, no request was sent
    mistakes: Vec<Mistake>,
    /// The verdict of robots.txt on the last URL requested, or to be requested: `ignored`, `allowed`,
    /// `forbidden`, or `unreadable`, which forbids all; null if it was not fetched
    #[schema(value_type = Option<String>)]
    robots: Option<&'static str>,
    /// The name by which robots.txt files address it, if it obeys them
    robots_name: Option<String>,
    /// The targets of redirects, in order
    redirects: Vec<String>,
    /// The status of the last response, if there was one
    status: Option<u16>,
    /// The size of the page, in bytes
    bytes: Option<usize>,
    /// The reason why there is no page to read
    no_page: Option<NoPage>,
    items: Vec<TriedItem>,
    /// The number of further items on the page
    items_left_out: usize,
    /// The required fields that the page does not have
    missing: Vec<String>,
    links: Vec<TriedLink>,
    /// The number of further links on the page
    links_left_out: u64,
}

/// The reason why there is no page
#[derive(Serialize, ToSchema)]
struct NoPage {
    /// The result in a crawl: the kind of failure, such as `http` or `timeout`, or the reason for a skip,
    /// such as `robots` or `blocked`
    reason: &'static str,
    /// The reason for people
    detail: String,
}

/// An item of the tried page
#[derive(Serialize, ToSchema)]
struct TriedItem {
    /// The name of its kind
    item: Option<String>,
    /// The number of items of its kind before it on the page
    number: usize,
    #[schema(value_type = Value)]
    fields: Map<String, Value>,
}

/// A link of the tried page
#[derive(Serialize, ToSchema)]
struct TriedLink {
    url: String,
    followed: bool,
    /// The reason why it is not followed: `domain`, `pattern`, or the limit that it exceeds, such as `depth`
    #[schema(value_type = Option<String>)]
    why: Option<&'static str>,
}

/// Fetches one page by a spider's rules, and returns the result of the spider. Nothing is stored. Requests
/// obey the hosts' robots.txt and the schedules of the workers. The spider has no environment variables and
/// no proxy of its own
#[utoipa::path(
    post, path = "/api/v1/spiders/try", tag = "spiders", security(("token" = [])), request_body = NewTrial,
    responses(
        (status = 200, body = Trial),
        (status = 404, description = "There is no such spider"),
        (status = 409, description = "The host is not to be asked now: try again later")
    )
)]
pub(crate) async fn try_spider(
    State(api): State<Arc<Api>>,
    identity: Identity,
    extract::Json(new): extract::Json<NewTrial>,
) -> Result<Json<Trial>, Problem> {
    let url = parsed("url", &new.url)?;
    let text = text(&api, &new).await?;
    let settings = Arc::clone(&api.backend.settings);
    let examine = move || {
        let origin = Origin::Tried(&settings.spiders);
        Examined::new(new.spider, &text, &new.arguments, &settings, origin)
    };
    let Examined { reading, ready, robots, .. } = api.examine(&identity, examine).await?;
    let mut mistakes = reading.mistakes;
    mistakes.extend(not_given(&reading.arguments));
    mistakes.sort_by_key(|mistake| mistake.place);
    let trial = Trial {
        spider: reading.spider.name.to_string(),
        url: url.to_string(),
        robots_name: robots.name().map(|name| name.to_string()),
        ..Trial::default()
    };
    match ready.filter(|_| mistakes.is_empty()) {
        Some(ready) => {
            let attempt = (api.backend.try_page)(reading.spider, ready, url).await?;
            Ok(Json(on_a_thread_apart(move || trial.with(attempt)).await))
        }
        None => Ok(Json(Trial { mistakes: mistakes.into_iter().map(Mistake::from).collect(), ..trial })),
    }
}

/// Returns the text of the spider's file.
async fn text(api: &Api, new: &NewTrial) -> Result<String, Problem> {
    let NewTrial { spider, project, version, .. } = new;
    if let Some(text) = &new.text {
        return match (project, version) {
            (None, None) => Ok(text.clone()),
            _ => Err(Problem::malformed("text: leave it out, or `project` and `version`")),
        };
    }
    let project = project.clone().unwrap_or_default();
    Ok(api.spider_text(&project, version.as_ref(), spider).await?.1)
}

impl Trial {
    fn with(self, Attempt { robots, redirects, status, page }: Attempt) -> Self {
        let asked = Self {
            robots: robots.map(|says| match says {
                RobotsOutcome::Ignored => "ignored",
                RobotsOutcome::Allowed => "allowed",
                RobotsOutcome::Forbidden => "forbidden",
                RobotsOutcome::Unreadable => "unreadable",
            }),
            redirects: redirects.iter().map(CanonicalUrl::to_string).collect(),
            status,
            ..self
        };
        match page {
            Ok(tried) => asked.with_page(tried),
            Err(untried) => Self { no_page: Some(untried.into()), ..asked },
        }
    }

    fn with_page(self, Tried { response, extraction, links, .. }: Tried) -> Self {
        let items_left_out = extraction.items.len();
        let links_left_out = extraction.left_out + links.len() as u64;
        let items = few(extraction.items);
        let links: Vec<_> = links.into_iter().take(MAX_ITEMS).map(TriedLink::from).collect();
        Self {
            bytes: Some(response.body.len()),
            items_left_out: items_left_out - items.len(),
            items,
            missing: extraction.missing.into_iter().map(|missing| missing.field).collect(),
            links_left_out: links_left_out - links.len() as u64,
            links,
            ..self
        }
    }
}

/// Returns as many of these items as a response has room for.
fn few(items: Vec<Extracted>) -> Vec<TriedItem> {
    let mut bytes = 0;
    let has_space = |item: &Extracted| {
        let had_room = bytes < MAX_ITEM_BYTES;
        bytes += serde_json::to_vec(&item.fields).map_or(0, |json| json.len());
        had_room
    };
    let item = |Extracted { rule, number, fields }: Extracted| TriedItem { item: rule, number, fields };
    items.into_iter().take(MAX_ITEMS).take_while(has_space).map(item).collect()
}

impl From<Untried> for NoPage {
    fn from(untried: Untried) -> Self {
        match untried {
            Untried::Failed(failure) => Self { reason: failure.class.as_str(), detail: failure.detail },
            Untried::Skipped(skip, detail) => Self { reason: skip.as_str(), detail },
        }
    }
}

impl From<JudgedLink> for TriedLink {
    fn from(JudgedLink { url, verdict, .. }: JudgedLink) -> Self {
        let why = verdict.why_not();
        Self { url: url.to_string(), followed: why.is_none(), why }
    }
}

impl From<NotTried> for Problem {
    fn from(why: NotTried) -> Self {
        match why {
            NotTried::Later(host, until) => {
                let wait = until.wait_from(UnixMs::now());
                Self::new(Kind::Busy, format_args!("{host} is not to be asked before {until}"))
                    .retry_after(wait.as_secs() + 1)
            }
            NotTried::Overdue(longest) => {
                Self::new(Kind::Timeout, format_args!("the page was not read within {longest:?}"))
            }
            NotTried::Full(most) => {
                Self::new(Kind::Unavailable, format_args!("{most} pages are tried already"))
            }
            NotTried::Unusable(why) => Self::malformed(format_args!("text: [request]: {why}")),
            NotTried::Port(error) => error.into(),
        }
    }
}
