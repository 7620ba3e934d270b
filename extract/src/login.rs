//! Reads the responses of a log-in: what is taken from them, what must hold of them, and the form that is sent next.

use std::sync::Arc;

use regex::RegexSet;
use serde_json::{Map, Value};
use trawl_common::frontier::Request;
use trawl_common::mistake::{Mistake, Sited};
use trawl_common::request::NewRequest;
use trawl_common::settings::Items;
use trawl_common::spider::{
    Carried, Follow, ItemRule, LapseSigns, Login, LoginRequest, LoginStep, PageFollow, PageForm, PageKind,
    PageMatch, Spider, pattern,
};
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use crate::{Extraction, Extractor};

/// A log-in that is ready to be made.
#[derive(Debug)]
pub struct LoginPlan {
    /// The steps, in order.
    pub steps: Vec<PlannedStep>,
    /// The secrets by name.
    pub secrets: Map<String, Value>,
    /// The signs of a session that has lapsed.
    pub signs: LapseSigns,
}

/// A step of a log-in.
#[derive(Debug)]
pub struct PlannedStep {
    /// How its request is made.
    pub request: LoginRequest,
    /// Reads its response; `None` if nothing of that is asked for.
    pub reader: Option<StepReader>,
    url: RegexSet,
    text: RegexSet,
    /// The selector that must find something.
    selector: Option<String>,
}

/// Reads the response of a step.
#[derive(Clone, Debug)]
pub struct StepReader {
    /// Reads it.
    pub extractor: Arc<Extractor>,
    is_form_next: bool,
}

/// The values and the form that a response gives to the rest of the log-in.
#[derive(Debug, Default)]
pub struct StepResult {
    /// The values that were taken.
    pub taken: Map<String, Value>,
    /// The form to send, if that is the next step.
    pub form: Option<NewRequest>,
}

impl LoginPlan {
    /// Prepares the log-in of a spider; `None` if it has none. Fails with the invalid patterns and selectors.
    pub(crate) fn new(spider: &Spider) -> Result<Option<Self>, Vec<Mistake>> {
        let Some(login) = &spider.login else { return Ok(None) };
        let (mut steps, mut mistakes) = (Vec::new(), Vec::new());
        let signs = LapseSigns::new(&login.lapsed).map_err(|found| mistakes.extend(found));
        for (number, step) in login.steps.iter().enumerate() {
            match PlannedStep::new(spider, login, step, login.steps.get(number + 1)) {
                Ok(step) => steps.push(step),
                Err(found) => mistakes.extend(found),
            }
        }
        match (signs, mistakes.is_empty()) {
            (Ok(signs), true) => Ok(Some(Self { steps, secrets: login.values(), signs })),
            _ => Err(mistakes),
        }
    }
}

impl PlannedStep {
    fn new(
        spider: &Spider,
        login: &Login,
        step: &LoginStep,
        next: Option<&LoginStep>,
    ) -> Result<Self, Vec<Mistake>> {
        let LoginStep { request, take, expect } = step;
        let form = next.and_then(|next| match &next.request {
            LoginRequest::Form(form) => Some(form),
            LoginRequest::Template(_) => None,
        });
        // Of the last answer, a sign that the session has lapsed says that the log-in has failed.
        let login = next.is_none().then(|| login.clone()).filter(|login| login.lapsed.selector.is_some());
        let is_read = form.is_some() || login.is_some() || !take.is_empty() || expect.selector.is_some();
        let reader = is_read.then(|| {
            let kind = PageKind {
                name: Sited::nowhere("step".to_owned()),
                when: PageMatch { selector: expect.selector.clone(), ..PageMatch::default() },
                follow: Some(form.map(sends).into_iter().collect()),
                carry: Vec::new(),
                render: None,
                steps: None,
            };
            let is_form_next = form.is_some();
            let reading = Spider {
                urls: spider.urls.clone(),
                follow: Some(Follow {
                    links: false,
                    nofollow: false,
                    noindex: false,
                    refresh: false,
                    ..Follow::default()
                }),
                pages: vec![kind],
                items: vec![ItemRule { name: None, each: None, fields: take.clone(), page: None }],
                login,
                ..Spider::without_file(spider.name.clone(), &Items::default())
            };
            Extractor::new(&reading)
                .map(|extractor| StepReader { extractor: Arc::new(extractor), is_form_next })
        });
        let url = pattern::all("login.steps.expect.url", &expect.url);
        let text = pattern::all("login.steps.expect.text", &expect.text);
        match (reader.transpose(), url, text) {
            (Ok(reader), Ok(url), Ok(text)) => Ok(Self {
                request: request.clone(),
                reader,
                url,
                text,
                selector: expect.selector.as_ref().map(ToString::to_string),
            }),
            (reader, url, text) => {
                Err([reader.err(), url.err(), text.err()].into_iter().flatten().flatten().collect())
            }
        }
    }

    /// Whether anything is expected of its response.
    pub fn is_checked(&self) -> bool {
        !self.url.is_empty() || !self.text.is_empty() || self.selector.is_some()
    }

    /// Returns the expectation that a response from `url` does not meet, in words, as far as that shows without parsing
    /// it.
    pub fn lacks(&self, url: &CanonicalUrl, response: &Response) -> Option<String> {
        if !self.url.is_empty() && !self.url.is_match(url.as_str()) {
            return Some("`expect.url` does not match the URL it led to".to_owned());
        }
        let is_found = || self.text.is_match(&String::from_utf8_lossy(&response.body));
        (!self.text.is_empty() && !is_found()).then(|| "`expect.text` does not match the answer".to_owned())
    }

    /// Returns what was read of a response. The error says what is not as it should be.
    pub fn result(&self, reader: &StepReader, extraction: Extraction) -> Result<StepResult, String> {
        if extraction.lapsed {
            return Err(
                "the answer still looks as if the session had lapsed, by `lapsed.selector`".to_owned()
            );
        }
        if let Some(missing) = extraction.missing.first() {
            return Err(format!("the answer has no `{}`, which `take` names", missing.field));
        }
        if extraction.kind.is_none() {
            return Err(format!("the answer has no `{}`", self.selector.as_deref().unwrap_or_default()));
        }
        let taken = extraction.items.into_iter().next().map(|item| item.fields).unwrap_or_default();
        let form = extraction.links.into_iter().next().and_then(|link| {
            let own = *link.request?;
            Some(NewRequest { data: None, url: link.written.unwrap_or(link.url).to_string(), ..own })
        });
        match form.is_none() && reader.is_form_next {
            true => Err("the answer has no form".to_owned()),
            false => Ok(StepResult { taken, form }),
        }
    }
}

impl StepReader {
    /// Returns the request with which a response is read, so that forms are filled in with these values.
    pub fn filling(&self, url: &CanonicalUrl, values: &Map<String, Value>) -> Option<Arc<Request>> {
        let carried = Carried { values: values.clone(), ..Carried::default() };
        let request = NewRequest { data: Some(carried.to_data()), ..NewRequest::get(url.as_str()) };
        Request::new(url.clone(), request).ok().map(Arc::new)
    }
}

/// Returns the rule that sends a form.
fn sends(form: &PageForm) -> PageFollow {
    PageFollow {
        name: None,
        each: None,
        link: Vec::new(),
        area: None,
        include: Vec::new(),
        exclude: Vec::new(),
        carry: Vec::new(),
        request: None,
        form: Some(form.clone()),
    }
}
