//! The pages of Scrapyd that its consoles read: the start page, which shows that a node is up, and the list
//! of jobs.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use trawl_common::jobs::{Job, JobStatus};
use trawl_common::time::UnixMs;

use super::Refusal;
use super::jobs::{ENDED, start, time};
use crate::Api;

/// `/`
pub(super) async fn first() -> Html<&'static str> {
    Html(concat!(
        "<html><head><title>trawl</title></head><body><h1>trawl</h1>",
        "<p><a href=\"/jobs\">Jobs</a>; <a href=\"/api/v1/openapi.json\">what else there is</a></p></body></html>"
    ))
}

/// `/jobs`: one row per job. A job has no process of its own, and no files for its log or its items.
pub(super) async fn jobs(State(api): State<Arc<Api>>) -> Result<Html<String>, Refusal> {
    let mut jobs = api.waitlisted(&None).await?;
    jobs.extend(api.jobs_of(&None, &[JobStatus::Running]).await?);
    jobs.extend(api.jobs_of(&None, ENDED).await?);
    let columns = ["Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Items"];
    let head: String = columns.iter().map(|name| format!("<th>{name}</th>")).collect();
    let now = UnixMs::now();
    let rows: String = jobs.iter().map(|job| row(job, now)).collect();
    Ok(Html(format!(
        "<html><head><title>trawl</title></head><body><h1>Jobs</h1>\
         <table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></body></html>"
    )))
}

/// Returns a row. Names have no characters that need escaping in HTML.
fn row(job: &Job, now: UnixMs) -> String {
    let new = &job.new;
    let (started, runtime, ended) = match job.status() {
        JobStatus::Pending => Default::default(),
        JobStatus::Running => (second(start(job)), runtime(start(job), now), String::new()),
        JobStatus::Finished | JobStatus::Failed | JobStatus::Cancelled => {
            let end = job.ended().unwrap_or(now);
            (second(start(job)), runtime(start(job), end), second(end))
        }
    };
    let cells =
        [new.project.as_str(), new.spider.as_str(), new.id.as_str(), "", &started, &runtime, &ended, "", ""];
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr>{cells}</tr>\n")
}

/// Formats an instant, to the second.
fn second(at: UnixMs) -> String {
    time(at).split('.').next().unwrap_or_default().to_owned()
}

/// Formats a duration as Scrapyd does: `0:01:09`.
fn runtime(from: UnixMs, to: UnixMs) -> String {
    let seconds = to.0.saturating_sub(from.0) / 1000;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_run_is_written_as_scrapyd_writes_it() {
        assert_eq!(runtime(UnixMs(1_000), UnixMs(70_999)), "0:01:09");
        assert_eq!(runtime(UnixMs(0), UnixMs(90_000_000)), "25:00:00");
        assert_eq!(second(UnixMs(1_700_000_000_123)), "2023-11-14 22:13:20");
    }
}
