//! The common parts of all pages.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{HeaderName, RETRY_AFTER};
use axum::response::{Html, IntoResponse, Response};

use crate::assets;
use crate::failure::Failure;
use crate::shown::Text;
use crate::visit::Visit;
use crate::visitor::Visitor;

/// The sections of the console: each page is one of these, or below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    Overview,
    Crawls,
    Jobs,
    Tasks,
    DeadLetters,
    Hosts,
    Workers,
    Runners,
    Spiders,
    Schedules,
    Logs,
    Elsewhere,
}

/// A page's frame.
pub(crate) struct Page {
    pub(crate) title: String,
    here: Here,
    pub(crate) visitor: Option<Visitor>,
    /// Whether it is updated while it is open.
    pub(crate) is_live: bool,
}

impl Page {
    pub(crate) fn new(title: impl Into<String>, here: Here, visit: &Visit) -> Self {
        Self { title: title.into(), here, visitor: Some(visit.visitor.clone()), is_live: false }
    }

    /// Returns a frame for a visitor who has not logged in.
    pub(crate) fn of_nobody(title: &str) -> Self {
        Self { title: title.to_owned(), here: Here::Elsewhere, visitor: None, is_live: false }
    }

    /// Sets whether the page is updated while it is open.
    pub(crate) fn live(self, is_live: bool) -> Self {
        Self { is_live, ..self }
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.visitor.as_ref().is_some_and(Visitor::is_operator)
    }

    /// The token that forms must contain.
    pub(crate) fn csrf(&self) -> &str {
        self.visitor.as_ref().map_or("", |visitor| &visitor.csrf)
    }

    pub(crate) fn version(&self) -> &'static str {
        assets::version()
    }

    /// The sections that every page links to: address, title, and whether it is the current one.
    pub(crate) fn places(&self) -> [(&'static str, &'static str, bool); 11] {
        let place = |path, name, here| (path, name, self.here == here);
        [
            place("/", "Overview", Here::Overview),
            place("/crawls", "Crawls", Here::Crawls),
            place("/jobs", "Jobs", Here::Jobs),
            place("/spiders", "Spiders", Here::Spiders),
            place("/schedules", "Schedules", Here::Schedules),
            place("/tasks", "Tasks", Here::Tasks),
            place("/dead-letters", "Dead letters", Here::DeadLetters),
            place("/hosts", "Hosts", Here::Hosts),
            place("/workers", "Workers", Here::Workers),
            place("/runners", "Runners", Here::Runners),
            place("/logs", "Log", Here::Logs),
        ]
    }
}

/// The response of a handler.
pub(crate) type Answer = Result<Response, Failure>;

/// Renders a page.
pub(crate) fn html(template: &impl Template) -> Answer {
    match template.render() {
        Ok(text) => Ok(Html(text).into_response()),
        Err(error) => {
            let title = "The page cannot be written";
            Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, title, error))
        }
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    page: Page,
    failure: &'a Failure,
}

/// Returns the page that reports a failure.
pub(crate) fn of_failure(failure: &Failure, visitor: Option<Visitor>) -> Response {
    let page = Page { visitor, ..Page::of_nobody(&failure.title) };
    match html(&FailurePage { page, failure }) {
        Ok(response) => answered(failure, response),
        Err(_) => failure.status().into_response(),
    }
}

/// Returns a page that is shown because of a failure, with the failure's status.
pub(crate) fn answered(failure: &Failure, shown: Response) -> Response {
    let after = failure.retry_after.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
    (failure.status(), after, shown).into_response()
}

#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct Confirm {
    pub(crate) page: Page,
    /// The action to confirm.
    pub(crate) question: Text,
    /// Its consequences.
    pub(crate) notes: Vec<Text>,
    /// The address to which the form is sent.
    pub(crate) action: String,
    /// The hidden fields of the form.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// The label of the button.
    pub(crate) verb: &'static str,
    /// The address of the link for cancelling.
    pub(crate) back: String,
}

/// Redirects to another page, which shows the result of an action.
pub(crate) fn to(path: &str) -> Response {
    // Not `Redirect`, which panics if a path is not a valid header.
    (StatusCode::SEE_OTHER, [(HeaderName::from_static("location"), path.to_owned())]).into_response()
}
