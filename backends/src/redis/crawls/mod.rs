//! Crawls as people see them: orders, stats, the places of their URLs.

pub(crate) mod control;
pub(crate) mod crawl_stats;
pub(crate) mod dead_letters;
pub(crate) mod forgetting;
pub(crate) mod lanes;
pub(crate) mod news;
pub(crate) mod orders;
pub(crate) mod places;
pub(crate) mod quality;
pub(crate) mod standings;
pub(crate) mod stats;
pub(crate) mod tasks;
pub(crate) mod url_state;
