//! Crawls, hosts and workers as callers see them. The names are those in the output of `trawl ... --json`.

mod crawl;
mod dead_letter;
mod fleet;
mod host;
mod known;
mod log;

use std::borrow::Cow;

use serde::Serialize;
use strum::VariantNames;
use trawl_common::explain;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome;
use trawl_common::jobs;
use trawl_common::logs;
use trawl_common::ports;
use trawl_common::spider::item;
use trawl_common::time::UnixMs;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

pub(crate) use self::crawl::{Crawl, CrawlHost, CrawlTasks, Job};
pub(crate) use self::dead_letter::{DeadLetter, Request};
pub(crate) use self::fleet::{Lane, Worker};
pub(crate) use self::host::Host;
pub(crate) use self::known::Known;
pub(crate) use self::log::LogEntry;

/// An instant in RFC 3339
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2026-01-31T12:00:00.000Z"))]
pub(crate) struct Time(String);

impl From<UnixMs> for Time {
    fn from(time: UnixMs) -> Self {
        Self(time.to_string())
    }
}

/// The schema of an enum of `trawl-common`, with its own list of words.
macro_rules! words {
    ($(#[doc = $doc:literal] $name:ident of $of:ty;)*) => {$(
        #[doc = $doc]
        pub(crate) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = <$of as VariantNames>::VARIANTS.iter().copied();
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some($doc.trim())).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )*};
}

words! {
    /// The status of a crawl
    Status of CrawlState;
    /// The status of a job
    JobStatus of jobs::JobStatus;
    /// The verdict of robots.txt on a URL, by the settings for all spiders
    RobotsVerdict of explain::RobotsVerdict;
    /// The reason why a URL failed
    Reason of outcome::Reason;
    /// A queue: for workers (`due`, `priority`, `bulk`, `expired`), for delays (`wait`), or for reading (`failed`)
    LaneName of ports::LaneName;
    /// The level of an entry of the log, the most severe first
    LogLevel of logs::LogLevel;
    /// The change in a page's content when it was last fetched
    Change of item::Change;
}
