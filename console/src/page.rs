//! What all pages have.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{HeaderName, RETRY_AFTER};
use axum::response::{Html, IntoResponse, Response};

use crate::assets;
use crate::failure::Failure;
use crate::guard::Visitor;
use crate::shown::Text;

/// What pages are about: each is one of these, or below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    Overview,
    Crawls,
    Jobs,
    Tasks,
    DeadLetters,
    Hosts,
    Workers,
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
    /// Whether it changes while it is looked at.
    pub(crate) is_live: bool,
}

impl Page {
    pub(crate) fn new(title: impl Into<String>, here: Here, visitor: &Visitor) -> Self {
        Self { title: title.into(), here, visitor: Some(visitor.clone()), is_live: false }
    }

    /// One of those that somebody sees who has not logged in.
    pub(crate) fn of_nobody(title: &str) -> Self {
        Self { title: title.to_owned(), here: Here::Elsewhere, visitor: None, is_live: false }
    }

    /// The same, but that it changes while it is looked at.
    pub(crate) fn live(self, is_live: bool) -> Self {
        Self { is_live, ..self }
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.visitor.as_ref().is_some_and(Visitor::is_operator)
    }

    /// What forms prove themselves by.
    pub(crate) fn csrf(&self) -> &str {
        self.visitor.as_ref().map_or("", |visitor| &visitor.csrf)
    }

    pub(crate) fn version(&self) -> &'static str {
        assets::version()
    }

    /// The places that every page links to.
    pub(crate) fn places(&self) -> [(&'static str, &'static str, bool); 10] {
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
            place("/logs", "Log", Here::Logs),
        ]
    }
}

/// What a handler answers.
pub(crate) type Answer = Result<Response, Failure>;

/// A page as it is sent.
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

/// The page that says what went wrong.
pub(crate) fn of_failure(failure: &Failure, visitor: Option<Visitor>) -> Response {
    let page = Page { visitor, ..Page::of_nobody(&failure.title) };
    match html(&FailurePage { page, failure }) {
        Ok(response) => answered(failure, response),
        Err(_) => failure.status().into_response(),
    }
}

/// A page that is shown because of a failure, with its status.
pub(crate) fn answered(failure: &Failure, shown: Response) -> Response {
    let after = failure.retry_after.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
    (failure.status(), after, shown).into_response()
}

#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct Confirm {
    pub(crate) page: Page,
    /// What will be done.
    pub(crate) question: Text,
    /// What comes of it.
    pub(crate) notes: Vec<Text>,
    /// Where the form goes.
    pub(crate) action: String,
    /// What it says.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// What is on the button.
    pub(crate) verb: &'static str,
    /// Where not doing it leads.
    pub(crate) back: String,
}

/// To another page: what was done is seen there.
pub(crate) fn to(path: &str) -> Response {
    // Not `Redirect`: it panics where a path cannot be a header.
    (StatusCode::SEE_OTHER, [(HeaderName::from_static("location"), path.to_owned())]).into_response()
}
