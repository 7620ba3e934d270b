//! `trawl spider try --task`: runs one task in the spider's handler, as a worker would.

use std::sync::Arc;

use anstream::println;
use anstyle::Style;
use serde_json::{Value, json};
use trawl_cli::{Fail, Outcome, SpiderArg, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::TaskKey;
use trawl_common::handler::{Answer, LogLine, Verdict};
use trawl_common::names::{CrawlRef, ProjectName};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::task::{NewTask, Recipe, TaskView};
use trawl_common::text::printable;
use trawl_handlers::{Ended, FilePosition, ItemsFile};
use trawl_worker::TaskTrial;

use super::examine::load;
use super::trial::proxy_alone;

/// Maximum length of a printed value.
const MAX_SHOWN: usize = 400;

/// Runs one task in a spider's handler and prints the answer. Stores none of it.
pub(super) async fn run(
    arg: &SpiderArg,
    folder: &Folder,
    recipe: Recipe,
    as_json: bool,
    settings: Settings,
) -> Outcome {
    let (spider, _) = load(arg, folder, &settings, false)?;
    let Some(handler) = &spider.handler else {
        return Err(Fail::usage(format!("the spider {} has no [handler] that could do a task", spider.name)));
    };
    let max_retries = handler.retries.or(spider.retry.max).unwrap_or(settings.retry.max);
    let (_alone, proxy) = proxy_alone(&Arc::new(settings))?;
    let trial = TaskTrial::new(&spider, folder.program_folder(&spider.name), &proxy);
    let trial = trial.map_err(|error| Fail::usage(error.to_string()))?;
    let task = TaskView {
        id: TaskKey::new(&spider.name, &NewTask::from_recipe(recipe.clone())).id(),
        project: ProjectName::default(),
        spider: spider.name.clone(),
        crawl: CrawlRef::adhoc_of(spider.name.clone()).id,
        recipe,
        attempt: 1,
        max_retries,
        priority: Default::default(),
    };
    match trial.task(task).await {
        Ended::Answered(mut answer, file) => {
            let in_file = file.as_ref().map(ItemsFile::items);
            if let Some(file) = file {
                let first = file.read(FilePosition::default()).await.map_err(Fail::run)?;
                answer.items.extend(first.items);
            }
            if as_json {
                print_json(&answer_as_json(&answer, in_file))
            } else {
                print(&answer, in_file)
            }
            Ok(if answer.verdict == Verdict::Failed { Exit::FailedUrls } else { Exit::Ok })
        }
        Ended::Failed { failure, logs } => {
            print_logs(&logs);
            Err(Fail::run(failure))
        }
        Ended::NotRun(why) => Err(Fail::run(why)),
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Done => "done",
        Verdict::Failed => "failed, to be tried again",
        Verdict::Skip => "left out",
    }
}

/// Prints an answer. If the items are in a file, `answer` has only the first of them.
fn print(answer: &Answer, in_file: Option<u64>) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    println!("{bold}{}{bold:#}", name(answer.verdict));
    let line = |what: &str, text: String| println!("  {dim}{what:<8}{dim:#} {text}");
    for item in &answer.items {
        line("item", printable(&Value::Object(item.clone()).to_string(), MAX_SHOWN));
    }
    if let (Some(count), Some(name)) = (in_file, &answer.items_file) {
        line(
            "file",
            format!("{}: {}, the first of them above", printable(name, MAX_SHOWN), counted(count, "item")),
        );
    }
    for task in &answer.tasks {
        line("task", printable(task.recipe.as_str(), MAX_SHOWN));
    }
    for url in &answer.urls {
        line("url", printable(&url.url, MAX_SHOWN));
    }
    print_logs(&answer.logs);
}

/// Prints the log, with the line breaks of stack traces kept.
fn print_logs(logs: &[LogLine]) {
    for LogLine { message, level } in logs {
        for line in message.lines() {
            anstream::eprintln!("{level}: {}", printable(line, MAX_SHOWN));
        }
    }
}

fn answer_as_json(answer: &Answer, in_file: Option<u64>) -> Value {
    let Answer { verdict, logs, tasks, urls, items, items_file: _ } = answer;
    let result = match verdict {
        Verdict::Done => 0,
        Verdict::Failed => 1,
        Verdict::Skip => 2,
    };
    let mut said = json!({ "result": result, "logs": logs, "tasks": tasks, "urls": urls, "items": items });
    if let Some(count) = in_file {
        said["items_in_file"] = count.into();
    }
    said
}
