//! The deployment of spiders: one file that is typed or chosen, or a tar of files.

use askama::Template;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use std::fmt::Write;
use trawl_common::text::is_harmful;

use super::spider::About;
use crate::answers::{Added, Checked, SpiderText, Versions};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Uploaded, written};
use crate::page::{Answer, Here, Page, html, to};
use crate::visit::Visit;

/// The default project.
const PROJECT: &str = "default";

/// Whether a character is invisible or changes how others are shown. Line breaks and tabs belong to any file.
fn is_hidden(c: char) -> bool {
    is_harmful(c) && !matches!(c, '\n' | '\r' | '\t')
}

/// The contents of the form.
#[derive(Default)]
pub(crate) struct Draft {
    project: Option<String>,
    version: Option<String>,
    spider: Option<String>,
    text: Option<String>,
}

#[derive(Template)]
#[template(path = "deploy.html")]
struct DeployPage {
    page: Page,
    draft: Draft,
    /// The result of checking the text.
    checked: Option<Checked>,
    /// The spiders that would be left out.
    others: Vec<String>,
    /// The reason why it was not deployed.
    wrong: Option<String>,
}

/// The file of a spider, for the API.
#[derive(Serialize)]
struct NewSpider<'a> {
    spider: &'a str,
    text: &'a str,
}

impl Draft {
    /// The text as it is shown and sent again. Invisible characters and those that change the reading
    /// direction are escaped as in TOML strings, because they could hide what the file does.
    fn shown_text(&self) -> String {
        let mut shown = String::new();
        for c in self.text.as_deref().unwrap_or_default().chars() {
            let code = u32::from(c);
            let _ = match c {
                c if !is_hidden(c) => shown.write_char(c),
                ..='\u{ffff}' => write!(shown, "\\u{code:04X}"),
                _ => write!(shown, "\\U{code:08X}"),
            };
        }
        shown
    }

    /// Whether the text has hidden characters.
    fn hides(&self) -> bool {
        self.text.as_deref().unwrap_or_default().chars().any(is_hidden)
    }

    fn project(&self) -> &str {
        written(&self.project).unwrap_or(PROJECT)
    }
}

pub(crate) async fn ask(visit: Visit, Asked(About { spider, project }): Asked<About>) -> Answer {
    let mut draft = Draft { spider, project, ..Draft::default() };
    if let Some(spider) = written(&draft.spider) {
        let call = Call::get(&["projects", draft.project(), "spiders", spider]);
        let SpiderText { text, .. } = visit.ask(call).await?;
        draft.text = Some(text);
    }
    html(&DeployPage::new(&visit, draft))
}

pub(crate) async fn deploy(visit: Visit, uploaded: Uploaded) -> Answer {
    let field = |name| uploaded.field(name).map(str::to_owned);
    let (project, version, spider) = (field("project"), field("version"), field("spider"));
    let mut shown = DeployPage::new(&visit, Draft { project, version, spider, text: field("text") });
    let is_trusted_alone = uploaded.field("alone").is_some();
    let is_to_check = uploaded.field("do") == Some("check");
    match shown.take_in(&visit, uploaded.file).await {
        Ok(_) if is_to_check && shown.checked.is_some() => html(&shown),
        Ok(_) if is_to_check => shown
            .refused_for(Failure::malformed("an archive is checked when it is deployed: choose it again")),
        Ok(None) => shown.refused(StatusCode::BAD_REQUEST),
        Ok(Some(file)) => {
            if !is_trusted_alone && shown.leaves_others_out(&visit).await? {
                return shown.refused(StatusCode::CONFLICT);
            }
            match shown.send(&visit, file).await {
                Ok(Added { project }) => Ok(to(&format!("/projects/{project}"))),
                Err(failure) => shown.refused_for(failure),
            }
        }
        Err(failure) => shown.refused_for(failure),
    }
}

impl DeployPage {
    fn new(visit: &Visit, draft: Draft) -> Self {
        let page = Page::new("Deploy spiders", Here::Spiders, visit);
        Self { page, draft, checked: None, others: Vec::new(), wrong: None }
    }

    /// Returns the file to deploy: the chosen file, or the text. If it is one spider's file, its text is
    /// checked and shown in the form. `None` if it has mistakes.
    async fn take_in(
        &mut self,
        visit: &Visit,
        file: Option<(String, Bytes)>,
    ) -> Result<Option<Bytes>, Failure> {
        let draft = &mut self.draft;
        match (file, written(&draft.text)) {
            (Some((name, bytes)), _) => {
                let Some(name) = name.strip_suffix(".toml") else { return Ok(Some(bytes)) };
                let text = str::from_utf8(&bytes);
                let text = text.map_err(|_| Failure::malformed("the file is not UTF-8"))?.to_owned();
                draft.text = Some(text);
                draft.spider.get_or_insert_with(|| name.to_owned());
            }
            (None, Some(_)) => {}
            (None, None) => {
                return Err(Failure::malformed("write what the spider's file says, or choose a file"));
            }
        }
        let Some(spider) = written(&draft.spider) else {
            return Err(Failure::malformed("spider: say what it is called"));
        };
        let text = draft.text.as_deref().unwrap_or_default();
        let call = Call::post(&["spiders", "check"]).body(&NewSpider { spider, text });
        let checked: Checked = visit.ask(call).await?;
        let file = checked.mistakes.is_empty().then(|| Bytes::from(text.to_owned()));
        self.checked = Some(checked);
        Ok(file)
    }

    /// Whether the latest version has spiders that a version with this spider alone would not have.
    async fn leaves_others_out(&mut self, visit: &Visit) -> Result<bool, Failure> {
        if self.checked.is_none() {
            return Ok(false);
        }
        let call = Call::get(&["projects", self.draft.project(), "versions"]);
        let latest = match visit.ask(call).await {
            Ok(Versions { mut versions }) => versions.pop(),
            Err(Failure { status: 404, .. }) => None,
            Err(failure) => return Err(failure),
        };
        let this = written(&self.draft.spider);
        let others = latest.into_iter().flat_map(|latest| latest.spiders);
        self.others = others.filter(|other| Some(other.as_str()) != this).collect();
        Ok(!self.others.is_empty())
    }

    async fn send(&self, visit: &Visit, file: Bytes) -> Result<Added, Failure> {
        let call = Call::post(&["projects", self.draft.project(), "versions"]).file(file);
        let spider = written(&self.draft.spider).filter(|_| self.checked.is_some());
        let call = call.with_any("version", written(&self.draft.version)).with_any("spider", spider);
        visit.ask(call).await
    }

    /// Shows the form again with its contents.
    fn refused(&self, status: StatusCode) -> Answer {
        Ok((status, html(self)?).into_response())
    }

    /// Shows the form again if its contents are the cause of the failure.
    fn refused_for(mut self, failure: Failure) -> Answer {
        if !matches!(failure.status, 400 | 404 | 413) {
            return Err(failure);
        }
        let status = failure.status();
        self.wrong = Some(failure.detail.to_string());
        self.refused(status)
    }
}
