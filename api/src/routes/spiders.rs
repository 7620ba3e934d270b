//! Spiders: the list, the text of one, and checks of deployed and other ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use trawl_common::mistake;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::settings::Settings;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{self, Origin, Version};
use trawl_extract::Examined;
use utoipa::{IntoParams, ToSchema};

use super::schedules::Schedule;
use crate::Api;
use crate::extract::{self, Params, Segment};
use crate::identity::Identity;
use crate::problem::Problem;

/// The filter of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Listing {
    /// Only those of this project
    #[param(value_type = Option<String>)]
    project: Option<ProjectName>,
}

/// All known spiders
#[derive(Serialize, ToSchema)]
pub(crate) struct Spiders {
    spiders: Vec<Spider>,
}

/// A spider
#[derive(Serialize, ToSchema)]
struct Spider {
    project: String,
    spider: String,
    /// The latest version of its project, which has it; null for a spider with a file beside the API, which
    /// workers may have too
    version: Option<String>,
}

/// The deployed spiders, and in the default project those with files beside the API. Workers may have files
/// of others
#[utoipa::path(
    get, path = "/api/v1/spiders", tag = "spiders", security(("token" = [])),
    params(Listing),
    responses((status = 200, body = Spiders))
)]
pub(crate) async fn list_spiders(
    State(api): State<Arc<Api>>,
    Params(Listing { project }): Params<Listing>,
) -> Result<Json<Spiders>, Problem> {
    let store = &api.backend.spider_store;
    let is_meant = |other: &ProjectName| project.as_ref().is_none_or(|project| project == other);
    let mut found = BTreeMap::new();
    if is_meant(&ProjectName::default()) {
        let here = api.spiders_here().into_iter();
        found.extend(here.map(|spider| ((ProjectName::default(), spider), None)));
    }
    for project in store.projects().await?.into_iter().filter(is_meant) {
        if let Some(latest) = store.versions(&project).await?.pop() {
            let version = Some(latest.version.to_string());
            let of_project = latest.spiders.into_iter();
            found.extend(of_project.map(|spider| ((project.clone(), spider), version.clone())));
        }
    }
    let spider = |((project, spider), version): ((ProjectName, SpiderName), _)| Spider {
        project: project.to_string(),
        spider: spider.to_string(),
        version,
    };
    Ok(Json(Spiders { spiders: found.into_iter().map(spider).collect() }))
}

/// The requested version.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfVersion {
    /// The version; by default the latest
    #[param(value_type = Option<String>)]
    version: Option<Version>,
}

/// A spider and the text of its file
#[derive(Serialize, ToSchema)]
pub(crate) struct SpiderText {
    project: String,
    spider: String,
    /// The version of the text; null for a spider with a file beside the API
    version: Option<String>,
    text: String,
}

/// The text of a spider's file. The spider is deployed, or in the default project has a file beside the API
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spiders/{spider}", tag = "spiders", security(("token" = [])),
    params(
        ("project" = String, Path, description = "Its project"),
        ("spider" = String, Path, description = "The spider"),
        OfVersion
    ),
    responses((status = 200, body = SpiderText), (status = 404, description = "There is no such project, version or spider"))
)]
pub(crate) async fn get_spider(
    State(api): State<Arc<Api>>,
    Segment((project, spider)): Segment<(ProjectName, SpiderName)>,
    Params(OfVersion { version }): Params<OfVersion>,
) -> Result<Json<SpiderText>, Problem> {
    let (version, text) = api.spider_text(&project, version.as_ref(), &spider).await?;
    let version = version.map(|version| version.to_string());
    Ok(Json(SpiderText { project: project.to_string(), spider: spider.to_string(), version, text }))
}

/// Every mistake in the file of this spider, and the spider's behaviour
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spiders/{spider}/check", tag = "spiders", security(("token" = [])),
    params(
        ("project" = String, Path, description = "Its project"),
        ("spider" = String, Path, description = "The spider"),
        OfVersion
    ),
    responses((status = 200, body = Checked), (status = 404, description = "There is no such project, version or spider"))
)]
pub(crate) async fn get_spider_check(
    State(api): State<Arc<Api>>,
    identity: Identity,
    Segment((project, spider)): Segment<(ProjectName, SpiderName)>,
    Params(OfVersion { version }): Params<OfVersion>,
) -> Result<Json<Checked>, Problem> {
    let (_, text) = api.spider_text(&project, version.as_ref(), &spider).await?;
    let folder = Folder::new(&api.backend.settings);
    let examine = move |settings: &Settings| {
        let origin = folder.origin(&spider, &text);
        Examined::new(spider.clone(), &text, &Arguments::default(), settings, origin)
    };
    Ok(Json(api.checked(&identity, examine).await?))
}

/// A spider to check
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draft {
    /// The text of its file
    text: String,
    /// Its name
    #[serde(default)]
    #[schema(value_type = String, default = "default")]
    spider: SpiderName,
    /// Values for its arguments
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    arguments: Arguments,
}

/// The contents of a spider's file, and the mistakes in it
#[derive(Serialize, ToSchema)]
pub(crate) struct Checked {
    spider: String,
    /// The mistakes, from the top
    mistakes: Vec<Mistake>,
    /// The environment variables that are not set here, and the arguments without a value
    unset: Vec<Mistake>,
    /// The arguments that it declares
    arguments: Vec<Argument>,
    schedule: Option<Schedule>,
    /// The name by which robots.txt files address it, if it obeys them
    robots_name: Option<String>,
    /// Whether it needs a tree of each page; null if it has mistakes
    needs_tree: Option<bool>,
    /// Its behaviour in words; empty if it has mistakes
    does: Vec<Does>,
}

/// One aspect of a spider's behaviour
#[derive(Serialize, ToSchema)]
struct Does {
    /// One word for it, such as `starts` or `follows`
    what: &'static str,
    /// The details
    how: String,
}

/// A mistake in a file
#[derive(Serialize, ToSchema)]
pub(super) struct Mistake {
    /// The line, from 1; null if it is about no particular place
    line: Option<u32>,
    /// The column, from 1, in characters
    column: Option<u32>,
    what: String,
}

/// An argument of a spider
#[derive(Serialize, ToSchema)]
struct Argument {
    name: String,
    /// Null if a crawl must give a value
    default: Option<String>,
    help: Option<String>,
}

/// Every mistake in a spider's file. Nothing is stored
#[utoipa::path(
    post, path = "/api/v1/spiders/check", tag = "spiders", security(("token" = [])), request_body = Draft,
    responses((status = 200, body = Checked))
)]
pub(crate) async fn check_spider(
    State(api): State<Arc<Api>>,
    identity: Identity,
    extract::Json(draft): extract::Json<Draft>,
) -> Result<Json<Checked>, Problem> {
    let Draft { text, spider, arguments } = draft;
    let examine = move |settings: &Settings| {
        Examined::new(spider, &text, &arguments, settings, Origin::Delivered(&settings.spiders))
    };
    Ok(Json(api.checked(&identity, examine).await?))
}

impl Api {
    async fn checked(
        &self,
        identity: &Identity,
        examine: impl FnOnce(&Settings) -> Examined + Send + 'static,
    ) -> Result<Checked, Problem> {
        let settings = Arc::clone(&self.backend.settings);
        self.examine(identity, move || Checked::from(examine(&settings))).await
    }
}

impl From<Examined> for Checked {
    fn from(examined: Examined) -> Self {
        let does = examined.summary().into_iter().map(|(what, how)| Does { what, how }).collect();
        let Examined { reading, ready, robots, .. } = examined;
        let list = |mistakes: Vec<mistake::Mistake>| mistakes.into_iter().map(Mistake::from).collect();
        let argument = |(name, declared): (String, spider::arguments::Declaration)| Argument {
            name,
            default: declared.value,
            help: declared.help,
        };
        Self {
            spider: reading.spider.name.to_string(),
            mistakes: list(reading.mistakes),
            unset: list(reading.unset),
            arguments: reading.arguments.into_iter().map(argument).collect(),
            schedule: reading.spider.schedule.as_ref().map(Schedule::from),
            robots_name: robots.name().map(|name| name.to_string()),
            needs_tree: ready.map(|ready| ready.extractor.needs_tree()),
            does,
        }
    }
}

impl From<mistake::Mistake> for Mistake {
    fn from(mistake::Mistake { place, what }: mistake::Mistake) -> Self {
        Self { line: place.map(|place| place.line), column: place.map(|place| place.column), what }
    }
}
