//! Tasks beside pages, with a runner that does what recipes say.

use async_trait::async_trait;
use serde_json::json;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::logs::LogWriter;
use trawl_common::request::NewRequest;
use trawl_common::task::TaskView;

use super::*;
use crate::spiders::Loaded;
use crate::tasks::{Gave, Ran, TaskRunner};

/// Runs what begins with one of a few words.
struct ByWord(Memory);

#[async_trait]
impl TaskRunner for ByWord {
    fn runs(&self, _: &Loaded) -> bool {
        true
    }

    async fn run(&self, _: &Loaded, task: TaskView, _: &LogWriter) -> Ran {
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
            _ => {
                let fields = json!({ "title": recipe }).as_object().cloned().unwrap();
                let tasks = vec!["child".parse().map(trawl_common::task::NewTask::of).unwrap()];
                Ran::Done(Gave {
                    items: vec![fields],
                    tasks,
                    urls: vec![NewRequest::get("http://a.example/")],
                })
            }
        }
    }
}

/// Says when what runs a task is ended.
struct Ended<'a>(&'a Memory);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.called("ended", "endless");
    }
}

fn start(memory: &Memory) -> Worker {
    let runner = ByWord(memory.clone());
    Worker::start_with(memory, |_| {}, |_| Some((Arc::new(runner), 2)))
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

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_workers_becomes_a_dead_letter_and_is_not_run() {
    let memory = Memory::default();
    let task = memory.task(r#""done""#);
    memory.is_started(task.as_str(), Start::Poison);
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
