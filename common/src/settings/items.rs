//! `[items]`: the fields that are extracted from every page, and the retention of the stream of items.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::duration;

/// `[items]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Items {
    /// Time that the stream keeps items; without it, for ever.
    #[serde(default, with = "duration::optional")]
    pub retention: Option<Duration>,
    /// Maximum size of the stream, beyond which the oldest items are dropped; without it, there is none.
    pub max_size: Option<ByteSize>,
    /// Whether items list the page's links, not only their count.
    pub links: bool,
    /// Further fields by CSS selector, in Scrapy's notation: `price = "span.price::text"`.
    #[serde(default)]
    pub fields: std::collections::BTreeMap<String, String>,
}
