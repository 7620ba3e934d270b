//! Tests of tasks beside pages, with a runner that follows the recipes.

use std::fs::File;
use std::io::Write;

use async_trait::async_trait;
use serde_json::json;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::request::NewRequest;
use trawl_common::task::TaskView;
use trawl_handlers::ItemsFile;

use super::*;
use crate::spiders::LoadedSpider;
use crate::tasks::{Gave, Ran, TaskRunner};

/// Runs recipes that begin with one of a few words.
struct ByWord(Memory);

#[async_trait]
impl TaskRunner for ByWord {
    fn runs(&self, _: &LoadedSpider) -> bool {
        true
    }

    async fn run(&self, _: &LoadedSpider, task: TaskView, _: &LogWriter) -> Ran {
        let recipe = task.recipe.as_str();
        self.0.called("run", format_args!("{recipe} {}/{}", task.attempt, task.max_retries));
        match recipe.split(' ').next() {
            Some("fail") => Ran::Failed(Failure::new(Class::Handler, "no")),
            Some("skip") => Ran::Skipped,
            Some("panic") => panic!("the runner's fault"),
            Some("endless") => {
                let _ended = Ended(&self.0);
                std::future::pending().await
            }
            Some("slow") => {
                sleep(Duration::from_secs(5)).await;
                Ran::Done(Gave::default())
            }
            Some("both") => {
                let file = Some(file_of_items(1).await.0);
                let fields = json!({ "title": "both" }).as_object().cloned().unwrap();
                Ran::Done(Gave { items: vec![fields], file, ..Gave::default() })
            }
            Some("file") => {
                let file = Some(file_of_items(2500).await.0);
                Ran::Done(Gave { file, ..Gave::default() })
            }
            Some("torn") => {
                let file = file_of_items(2500).await;
                // Its program still has the file open.
                file.1.set_len(20_000).unwrap();
                Ran::Done(Gave { file: Some(file.0), ..Gave::default() })
            }
            _ => {
                let fields = json!({ "title": recipe }).as_object().cloned().unwrap();
                let tasks = vec!["child".parse().map(trawl_common::task::NewTask::from_recipe).unwrap()];
                let urls = vec![NewRequest::get("http://a.example/")];
                Ran::Done(Gave { items: vec![fields], tasks, urls, ..Gave::default() })
            }
        }
    }
}

/// Returns a file with this many items, and another handle of it, as its program has.
async fn file_of_items(count: usize) -> (ItemsFile, File) {
    let mut file = tempfile::tempfile().unwrap();
    (0..count).for_each(|number| writeln!(file, "{{\"number\": {number}}}").unwrap());
    let bytes = file.metadata().unwrap().len();
    (ItemsFile::new(file.try_clone().unwrap(), bytes).checked().await.unwrap(), file)
}

/// Records when the run of a task is dropped.
struct Ended<'a>(&'a Memory);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.called("ended", "endless");
    }
}

fn start(memory: &Memory) -> Worker {
    let runner = ByWord(memory.clone());
    Worker::start_with(memory, |_| {}, Some((Arc::new(runner), 2)))
}

#[tokio::test(start_paused = true)]
async fn a_task_is_started_run_stored_and_settled_in_that_order() {
    let memory = Memory::default();
    let task = memory.task(r#"{"recipe": "done", "retries": 7}"#);
    let calls = start(&memory).until_ended(1).await;
    let expected = [
        format!("start {task}"),
        "run done 1/7".to_owned(),
        format!("store {task}"),
        format!("settle {task} done"),
    ];
    assert_eq!(
        calls.iter().filter(|call| expected.contains(call)).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn all_items_of_a_file_are_stored_before_their_task_is_settled() {
    let memory = Memory::default();
    let task = memory.task(r#""file""#);
    let calls = start(&memory).until_ended(1).await;
    let stored = format!("store {task}");
    let (first, settled) = (at(&calls, &stored), at(&calls, &format!("settle {task} done")));
    assert_eq!(calls[first..settled], [stored.clone(), stored.clone(), stored]);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_refuses_once_loses_no_item_of_a_task_that_has_a_file_as_well() {
    let memory = Memory::default();
    let task = memory.task(r#""both""#);
    memory.sink_refuses(1);
    let calls = start(&memory).until_ended(1).await;
    at(&calls, &format!("settle {task} done"));
    assert_eq!((count(&calls, "refuse"), count(&calls, "store")), (1, 2), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn tasks_whose_spiders_sinks_take_nothing_come_back_later_and_hold_up_no_others() {
    let memory = Memory::default();
    memory.sink_refuses(20);
    // Two run at once, and eight are held.
    (0..12).for_each(|number| drop(memory.task(&format!(r#""done {number}""#))));
    let worker = start(&memory);
    timeout(LIMIT, memory.until("put aside", 6)).await.unwrap();
    assert_eq!((count(&memory.calls(), "run"), count(&memory.calls(), "settle")), (6, 0));
    let calls = worker.until_ended(12).await;
    assert_eq!(count(&calls, "run"), 12);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_lost_while_its_file_is_stored_is_not_settled() {
    let memory = Memory::default();
    let task = memory.task(r#""file""#);
    memory.lose_when_stored(&task);
    let worker = start(&memory);
    timeout(LIMIT, memory.until("goes round", 1)).await.unwrap();
    let calls = worker.stop().await.unwrap();
    assert_eq!((count(&calls, "store"), count(&calls, "settle")), (1, 0), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_cut_off_while_it_is_stored_is_a_failed_task() {
    let memory = Memory::default();
    let task = memory.task(r#"{"recipe": "torn", "retries": 0}"#);
    let calls = start(&memory).until_ended(1).await;
    at(&calls, &format!("settle {task} failed retries"));
}

#[tokio::test(start_paused = true)]
async fn what_a_task_asks_for_is_admitted_with_its_end() {
    let memory = Memory::default();
    let task = memory.task(r#""done""#);
    start(&memory).until_ended(1).await;
    let links = memory.links();
    assert_eq!(links.len(), 2);
    for link in links {
        assert_eq!((link.depth, link.referrer), (1, Some(task.clone())));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_put_aside_until_its_retries_are_used_up() {
    let memory = Memory::default();
    let last = memory.task(r#"{"recipe": "fail at once", "retries": 0}"#);
    let calls = start(&memory).until_ended(1).await;
    at(&calls, &format!("settle {last} failed retries"));
    let memory = Memory::default();
    let again = memory.task(r#"{"recipe": "fail again", "retries": 1}"#);
    let worker = start(&memory);
    timeout(LIMIT, memory.until("put aside", 1)).await.unwrap();
    let calls = worker.stop().await.unwrap();
    at(&calls, &format!("put aside {again}"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_left_out_or_panics_ends_and_the_next_one_runs() {
    let memory = Memory::default();
    let [skipped, panicked, done] = [r#""skip""#, r#""panic""#, r#""done""#].map(|line| memory.task(line));
    let calls = start(&memory).until_ended(3).await;
    at(&calls, &format!("settle {skipped} skipped"));
    at(&calls, &format!("settle {panicked} failed final"));
    at(&calls, &format!("settle {done} done"));
}

/// It is neither run nor settled before that.
#[tokio::test(start_paused = true)]
async fn a_task_that_comes_behind_a_more_urgent_one_is_claimed_again() {
    let memory = Memory::default();
    let task = memory.task(r#""done""#);
    memory.comes_behind();
    let calls = start(&memory).until_ended(1).await;
    let behind = at(&calls, &format!("comes behind {task}"));
    assert!(behind < at(&calls, &format!("start {task}")), "{calls:?}");
    assert_eq!((count(&calls, "run"), count(&calls, "settle")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn tasks_that_may_kill_workers_begin_one_at_a_time_beside_the_others() {
    let memory = Memory::default();
    let suspects = [r#""slow 1""#, r#""slow 2""#].map(|line| {
        let key = Memory::default().task(line);
        memory.has_begun(key.as_str(), SUSPECT_STARTS);
        assert_eq!(memory.task(line), key);
        key
    });
    let other = memory.task(r#""slow 3""#);
    let runner = ByWord(memory.clone());
    let calls = Worker::start_with(&memory, |_| {}, Some((Arc::new(runner), 3))).until_ended(3).await;
    let started = at(&calls, &format!("start {}", suspects[1]));
    assert!(at(&calls, &format!("settle {} done", suspects[0])) < started, "{calls:#?}");
    assert!(at(&calls, &format!("start {other}")) < started, "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_workers_becomes_a_dead_letter_and_is_not_run() {
    let memory = Memory::default();
    let task = memory.task(r#""done""#);
    memory.set_start(task.as_str(), StartReply::Poison);
    let calls = start(&memory).until_ended(1).await;
    at(&calls, &format!("settle {task} failed poison"));
    assert_eq!(count(&calls, "run"), 0);
}

#[tokio::test(start_paused = true)]
async fn as_many_tasks_run_at_once_as_there_are_places_and_those_that_run_end_after_the_stop() {
    let memory = Memory::default();
    for number in 0..3 {
        memory.task(&format!(r#""slow {number}""#));
    }
    let worker = start(&memory);
    timeout(LIMIT, memory.until("run", 2)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(count(&memory.calls(), "run"), 2);
    let calls = worker.stop().await.unwrap();
    assert_eq!((count(&calls, "run"), count(&calls, "settle")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn what_runs_a_task_is_ended_soon_after_the_task_was_cancelled() {
    let memory = Memory::default();
    let task = memory.task(r#""endless""#);
    let worker = start(&memory);
    timeout(LIMIT, memory.until("run", 1)).await.unwrap();
    memory.loses(&task);
    timeout(Duration::from_secs(5), memory.until("goes round", 1)).await.unwrap();
    let calls = worker.stop().await.unwrap();
    assert!(at(&calls, "ended endless") < at(&calls, &format!("goes round {task}")), "{calls:?}");
    assert_eq!(count(&calls, "settle"), 0);
}
