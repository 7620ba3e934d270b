//! Spiders, their projects, and the mistakes in their files.

use serde::Deserialize;
use serde_json::Value;

use crate::shown::{Bytes, Number, Text, Time};

/// All known spiders.
#[derive(Deserialize)]
pub(crate) struct Spiders {
    pub(crate) spiders: Vec<Spider>,
}

/// A spider.
#[derive(Deserialize)]
pub(crate) struct Spider {
    pub(crate) project: String,
    pub(crate) spider: String,
    /// `None` for a spider whose file is beside the API.
    pub(crate) version: Option<String>,
}

/// The text of a spider's file.
#[derive(Deserialize)]
pub(crate) struct SpiderText {
    pub(crate) version: Option<String>,
    pub(crate) text: String,
}

/// The result of checking a file.
#[derive(Default, Deserialize)]
pub(crate) struct Checked {
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) unset: Vec<Mistake>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) does: Vec<Does>,
}

/// A mistake in a file.
#[derive(Deserialize)]
pub(crate) struct Mistake {
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    pub(crate) what: Text,
}

/// An argument of a spider.
#[derive(Deserialize)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) default: Option<Text>,
    pub(crate) help: Option<Text>,
}

/// One aspect of a spider's behaviour.
#[derive(Deserialize)]
pub(crate) struct Does {
    pub(crate) what: String,
    pub(crate) how: Text,
}

/// The result of trying a spider on a page.
#[derive(Deserialize)]
pub(crate) struct Trial {
    pub(crate) url: Text,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) robots: Option<String>,
    pub(crate) redirects: Vec<Text>,
    pub(crate) status: Option<u16>,
    pub(crate) bytes: Option<Bytes>,
    pub(crate) no_page: Option<NoPage>,
    pub(crate) items: Vec<TriedItem>,
    pub(crate) items_left_out: Number,
    pub(crate) missing: Vec<Text>,
    pub(crate) links: Vec<TriedLink>,
    pub(crate) links_left_out: Number,
}

/// The reason why there is no page.
#[derive(Deserialize)]
pub(crate) struct NoPage {
    pub(crate) reason: String,
    pub(crate) detail: Text,
}

/// An item of the tried page.
#[derive(Deserialize)]
pub(crate) struct TriedItem {
    pub(crate) item: Option<Text>,
    pub(crate) fields: Value,
}

/// A link of the tried page.
#[derive(Deserialize)]
pub(crate) struct TriedLink {
    pub(crate) url: Text,
    pub(crate) followed: bool,
    pub(crate) why: Option<String>,
}

/// The versions of a project, the latest last.
#[derive(Deserialize)]
pub(crate) struct Versions {
    pub(crate) versions: Vec<Version>,
}

/// A version of a project.
#[derive(Deserialize)]
pub(crate) struct Version {
    pub(crate) version: String,
    pub(crate) added: Time,
    pub(crate) spiders: Vec<String>,
}

/// The deployed project.
#[derive(Deserialize)]
pub(crate) struct Added {
    pub(crate) project: String,
}

/// The removed version; `None` for all of them.
#[derive(Deserialize)]
pub(crate) struct Removed {
    pub(crate) version: Option<String>,
}

impl Trial {
    /// The verdict of robots.txt, in words.
    pub(crate) fn robots(&self) -> &'static str {
        match self.robots.as_deref() {
            Some("allowed") => "allows it",
            Some("forbidden") => "forbids it",
            Some("ignored") => "is not asked for",
            Some("unreadable") => "cannot be read, which forbids all",
            _ => "was not read",
        }
    }
}

impl TriedItem {
    /// Its fields as JSON on several lines.
    pub(crate) fn json(&self) -> String {
        crate::shown::json(&self.fields)
    }
}
