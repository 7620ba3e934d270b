//! The handlers, by subject.

pub(crate) mod crawls;
pub(crate) mod dead_letters;
pub(crate) mod ended_tasks;
pub(crate) mod events;
pub(crate) mod hosts;
pub(crate) mod items;
pub(crate) mod lanes;
pub(crate) mod logs;
pub(crate) mod made_projects;
pub(crate) mod meta;
pub(crate) mod metrics;
pub(crate) mod new_crawl;
pub(crate) mod project_work;
pub(crate) mod projects;
pub(crate) mod runners;
pub(crate) mod schedules;
pub(crate) mod spiders;
pub(crate) mod tasks;
pub(crate) mod trial;
pub(crate) mod url;
pub(crate) mod urls;
pub(crate) mod workers;
