//! `[items]`: what is extracted from every page, and how long the stream keeps it.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::duration;

/// `[items]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Items {
    /// How long the stream keeps items; for ever without it.
    #[serde(default, with = "duration::optional")]
    pub retention: Option<Duration>,
    /// How large the stream may grow before the oldest items go; any size without it.
    pub max_size: Option<ByteSize>,
    /// Whether items list the page's links, not only their count.
    pub links: bool,
    /// Further fields by CSS selector, in Scrapy's notation: `price = "span.price::text"`.
    #[serde(default)]
    pub fields: std::collections::BTreeMap<String, String>,
}
