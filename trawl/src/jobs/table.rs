//! Prints jobs for people.

use anstream::println;
use anstyle::Style;
use trawl_cli::count;
use trawl_common::text::printable;
use trawl_common::web::url::MAX_URL_BYTES;

use super::Row;

const DIM: Style = Style::new().dimmed();

/// Prints one row per job.
pub(super) fn print(rows: &[Row]) {
    println!(
        "{DIM}{:<12} {:<24} {:<10} {:>8}  {:<24}  {}{DIM:#}",
        "spider", "job", "status", "priority", "asked", "problem"
    );
    for row in rows {
        let job = &row.job;
        println!(
            "{:<12} {:<24} {:<10} {:>8}  {:<24}  {}",
            job.new.spider.as_str(),
            job.new.id.as_str(),
            job.status().as_str(),
            job.new.priority.to_string(),
            job.asked.to_string(),
            printable(&row.problems(), 160),
        );
    }
}

/// Prints all details of a job, one line for each field that it has.
pub(super) fn print_in_full(Row { job, notes }: &Row) {
    let row = |name: &str, value: &str| println!("{DIM}{name:<10}{DIM:#} {value}");
    let new = &job.new;
    row("job", new.id.as_str());
    row("spider", new.spider.as_str());
    row("project", new.project.as_str());
    if let Some(version) = &new.version {
        row("version", version.as_str());
    }
    row("status", job.status().as_str());
    row("priority", &new.priority.to_string());
    new.requests().for_each(|url| row("url", &printable(&url.url, MAX_URL_BYTES)));
    let tasks = new.tasks().count() as u64;
    if tasks > 0 {
        row("tasks", &count(tasks));
    }
    new.sources.iter().for_each(|source| row("source", source.as_str()));
    for (name, value) in new.arguments.iter() {
        row("argument", &printable(&format!("{name}={value}"), 200));
    }
    row("asked", &job.asked.to_string());
    if let Some(run) = job.run() {
        row("started", &run.started.to_string());
        row("worker", run.runner.as_str());
    }
    if let Some(ended) = job.ended() {
        row("ended", &ended.to_string());
    }
    if let Some(problem) = job.problem() {
        row("problem", problem.as_str());
    }
    notes.iter().for_each(|note| row("note", note));
}
