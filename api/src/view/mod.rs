//! Crawls, hosts and workers as callers see them. The names are those that `trawl ... --json` prints.

mod crawl;
mod dead_letter;
mod fleet;
mod host;
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
pub(crate) use self::log::LogEntry;

/// An instant, by RFC 3339
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2026-01-31T12:00:00.000Z"))]
pub(crate) struct Time(String);

impl From<UnixMs> for Time {
    fn from(time: UnixMs) -> Self {
        Self(time.to_string())
    }
}

/// The schema of an enum of `trawl-common`: its words, from its own list.
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
    /// Where a crawl stands
    Status of CrawlState;
    /// Where a job stands
    JobStatus of jobs::JobStatus;
    /// What robots.txt says of a URL, as the settings speak for all spiders
    RobotsVerdict of explain::RobotsVerdict;
    /// Why a URL reached no good end
    Reason of outcome::Reason;
    /// Where messages wait: for a worker (`due`, `priority`, `bulk`, `expired`), for their time (`wait`), or to be read (`failed`)
    LaneName of ports::LaneName;
    /// How grave an entry of the log is, the gravest first
    LogLevel of logs::LogLevel;
    /// What had become of a page's content when it was fetched last
    Change of item::Change;
}
