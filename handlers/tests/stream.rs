//! Programs that live.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use support::{failure, program, task};
use tokio::time::timeout;
use trawl_common::handler::stream::{PageHead, ResponseHead};
use trawl_common::handler::{Answer, Verdict};
use trawl_common::spider::{Handler, Mode};
use trawl_handlers::{Came, Ended, Page, Program, Response, Stream, Work};

/// Answers what it is given, unless that says otherwise. A request `wait` is answered with the one after it.
const PROGRAM: &str = r#"
import json, os, sys, time
def say(**said):
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
waiting = []
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "start":
        start = request
        continue
    id = request["id"]
    if request["type"] == "page":
        page = request["page"]
        body = open(page["file"], "rb").read() if "file" in page else None
        say(id=id, result=0, items=[{"keys": sorted(page), "length": len(body or page.get("text") or page.get("base64"))}])
        continue
    recipe = request["task"]["recipe"]
    if recipe == "die": os._exit(3)
    elif recipe == "kill": os.kill(os.getpid(), 9)
    elif recipe == "hang": time.sleep(1000)
    elif recipe == "rubbish": print("rubbish", flush=True)
    elif recipe == "stranger": say(id=id + 1000, result=0)
    elif recipe == "flood":
        while True: sys.stdout.write("x" * 65536)
    elif recipe == "endless":
        while True: say(id=id, items=[{"x": "x" * 65536}])
    elif recipe == "deaf": os.close(0); time.sleep(1000)
    elif recipe == "mute": os.close(1); time.sleep(1000)
    elif recipe == "wait": waiting.append(id)
    elif recipe.startswith("file"):
        path = os.path.join(os.environ["TRAWL_TMP"], "items")
        with open(path, "w") as file: file.write('{"n": 1}\n' if recipe == "file" else "rubbish")
        say(id=id, items_file=path)
        say(id=id, result=0, items=[{"left": os.path.exists(path)}])
    elif recipe == "last":
        with open(os.path.join(os.environ["TRAWL_TMP"], "items"), "w") as file: file.write("{}")
        say(id=id, result=0, items_file="items")
        os._exit(0)
    else:
        say(id=id, items=[{"pid": os.getpid()}], logs=[{"message": "half", "level": 7}])
        say(id=id, result=0, items=[{"recipe": recipe, "concurrency": start["concurrency"], "secret": start["secret"]}])
        for other in waiting: say(id=other, result=0)
        waiting.clear()
"#;

fn stream_of(folder: &Path, script: &str, handler: impl FnOnce(Handler) -> Handler) -> Stream {
    let program = program(folder, Mode::Stream, &["python3", "-c", script]);
    let handler = handler(program.handler);
    Stream::new(Arc::new(Program { handler, ..program }))
}

async fn ask(stream: &Stream, recipe: &str) -> Ended {
    stream.ask(Work::Task(task(recipe))).await
}

#[track_caller]
fn answer(ended: Ended) -> Answer {
    match ended {
        Ended::Answered(answer, _) => answer,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_process_answers_many_requests_in_any_order_and_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream_of(folder.path(), PROGRAM, |handler| handler);
    let (waiting, other, first) =
        tokio::join!(ask(&stream, "wait"), ask(&stream, "wait"), ask(&stream, "first"));
    assert_eq!([answer(waiting).verdict, answer(other).verdict], [Verdict::Done, Verdict::Done]);
    let (first, second) = (answer(first), answer(ask(&stream, "second").await));
    assert_eq!((first.items.len(), first.logs.len()), (2, 1));
    assert_eq!(first.items[0]["pid"], second.items[0]["pid"], "it lives");
    assert_eq!(second.items[1]["recipe"], "second");
    assert_eq!(
        (&second.items[1]["concurrency"], &second.items[1]["secret"]),
        (&16.into(), &serde_json::json!({}))
    );
}

#[tokio::test]
async fn a_page_is_text_or_base64_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream_of(folder.path(), PROGRAM, |handler| handler);
    let head = PageHead {
        url: "http://a.example/".to_owned(),
        final_url: None,
        crawl: "c".parse().unwrap(),
        depth: 0,
        referrer: None,
        method: None,
        data: None,
    };
    let page = |bytes: Vec<u8>, text: Option<String>| {
        let response = ResponseHead { status: 200, headers: Vec::new(), fetched_at: String::new() };
        let response = Response { head: response, bytes: Bytes::from(bytes), text };
        Page { head: head.clone(), came: Came::Response(response) }
    };
    for (page, key, length) in [
        (page(b"<p>".to_vec(), Some("<p>".to_owned())), "text", 3),
        (page(vec![0xff; 3], None), "base64", 4),
        (page(vec![b'x'; 3_000_000], Some("x".repeat(3_000_000))), "file", 3_000_000),
    ] {
        let item = answer(stream.ask(Work::Page(page)).await).items.remove(0);
        assert!(item["keys"].as_array().unwrap().contains(&key.into()), "{item:?}");
        assert_eq!(item["length"], length);
    }
}

#[tokio::test]
async fn a_file_of_items_is_taken_when_its_request_is_answered_and_its_name_is_free_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let one = |handler| Handler { concurrency: std::num::NonZeroUsize::new(1), ..handler };
    let stream = stream_of(folder.path(), PROGRAM, one);
    for _ in 0..3 {
        let ended = ask(&stream, "file").await;
        assert!(matches!(ended, Ended::Answered(_, Some(file)) if file.items() == 1));
    }
    let (what, _) = failure(ask(&stream, "file of rubbish").await);
    assert!(what.contains("the items_file, line 1: not JSON"), "{what}");
    // It lives on: what is in a file is no line of the protocol. A program that ends at once has left its file all the
    // same.
    let ended = ask(&stream, "last").await;
    assert!(matches!(ended, Ended::Answered(_, Some(file)) if file.items() == 1));
}

#[tokio::test]
async fn who_kills_the_program_fails_alone_and_all_others_are_done() {
    let folder = tempfile::tempdir().unwrap();
    for (culprit, expected) in [
        ("die", "exited with status 3"),
        ("kill", "was killed by signal 9"),
        ("rubbish", "wrote a line that is no answer: not JSON"),
        ("stranger", "which it was not given"),
        ("flood", "wrote a line of more than 16 MB"),
        ("endless", "said more than 16 MB"),
    ] {
        let stream = stream_of(folder.path(), PROGRAM, |handler| handler);
        let (culprit, a, b) = tokio::join!(ask(&stream, culprit), ask(&stream, "a"), ask(&stream, "b"));
        let (what, _) = failure(culprit);
        assert!(what.contains(expected), "{what}");
        assert_eq!([answer(a).verdict, answer(b).verdict], [Verdict::Done; 2]);
    }
}

#[tokio::test]
async fn who_takes_too_long_fails_and_what_was_with_it_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let second = |handler| Handler { timeout: Duration::from_secs(1), ..handler };
    for culprit in ["hang", "deaf", "mute"] {
        let stream = stream_of(folder.path(), PROGRAM, second);
        let (what, _) = failure(ask(&stream, culprit).await);
        assert!(what.contains("took longer than 1s") || what.contains("was stopped"), "{culprit}: {what}");
        assert_eq!(answer(ask(&stream, "next").await).verdict, Verdict::Done);
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_given_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stream = Stream::new(Arc::new(program(folder.path(), Mode::Stream, &["./none"])));
    assert!(matches!(ask(&stream, "x").await, Ended::NotRun(why) if why.contains("there is no program")));
}

#[tokio::test]
async fn a_program_that_dies_at_once_is_a_failed_task_with_the_end_of_its_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream_of(folder.path(), "import no_such_module", |handler| handler);
    let (what, logs) = failure(ask(&stream, "x").await);
    assert!(what.contains("exited with status 1: ModuleNotFoundError: No module named"), "{what}");
    assert!(logs.contains("Traceback"), "{logs}");
}

/// Fails before it is given anything, until the file `mended` is there.
const BROKEN: &str = "import os, sys\nif not os.path.exists('mended'):\n  WHY\n";

#[tokio::test]
async fn a_program_that_fails_before_it_is_given_anything_loses_nothing_and_says_why_until_it_is_mended() {
    for (how, expected) in [
        ("sys.exit(0)", "exited with status 0 and answered nothing: does it lack `run()`?"),
        ("raise ValueError('no key')", "exited with status 1: ValueError: no key"),
        ("print('hello'); sys.exit()", "wrote a line that is no answer: not JSON"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let script = BROKEN.replace("WHY", how) + PROGRAM;
        let stream = stream_of(folder.path(), &script, |handler| handler);
        let ended = timeout(Duration::from_secs(20), ask_all(&stream, 40)).await.unwrap();
        for ended in ended {
            assert!(matches!(&ended, Ended::NotRun(why) if why.contains(expected)), "{ended:?}");
        }
        std::fs::write(folder.path().join("mended"), "").unwrap();
        while stream.trouble().is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(answer(ask(&stream, "next").await).verdict, Verdict::Done);
        assert_eq!(stream.trouble(), None);
    }
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_ended_and_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let one = |handler| Handler { concurrency: std::num::NonZeroUsize::new(1), ..handler };
    let stream = stream_of(folder.path(), PROGRAM, one);
    assert_eq!(answer(ask(&stream, "first").await).verdict, Verdict::Done);
    tokio::select! {
        biased;
        ended = ask(&stream, "hang") => panic!("{ended:?}"),
        // It is queued for the program by then.
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(answer(ask(&stream, "next").await).verdict, Verdict::Done);
}

/// A program that does one thing after the other could not begin it sooner.
#[tokio::test]
async fn the_time_of_a_request_begins_when_those_before_it_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let script = PROGRAM.replace(
        "if recipe == \"die\": os._exit(3)",
        "if recipe == \"nap\": time.sleep(0.7); say(id=id, result=0)",
    );
    let stream =
        stream_of(folder.path(), &script, |handler| Handler { timeout: Duration::from_secs(2), ..handler });
    let naps = tokio::join!(ask(&stream, "nap"), ask(&stream, "nap"), ask(&stream, "nap"));
    for ended in [naps.0, naps.1, naps.2] {
        assert_eq!(answer(ended).verdict, Verdict::Done);
    }
}

/// A program with the module for Python, and the time that a task of these tests may take.
fn stream_of_module(program: &str, handler: impl FnOnce(Handler) -> Handler) -> (tempfile::TempDir, Stream) {
    let folder = tempfile::tempdir().unwrap();
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/python/trawl_handler.py");
    std::fs::copy(module, folder.path().join("trawl_handler.py")).unwrap();
    let script = format!("from trawl_handler import *\n{program}");
    let timed = |usual| Handler { timeout: Duration::from_secs(20), ..handler(usual) };
    let stream = stream_of(folder.path(), &script, timed);
    (folder, stream)
}

fn at_once(count: usize) -> impl FnOnce(Handler) -> Handler {
    move |usual| Handler { concurrency: std::num::NonZeroUsize::new(count), ..usual }
}

/// Asks for so many tasks at once, whose recipes are their numbers.
async fn ask_all(stream: &Stream, count: usize) -> Vec<Ended> {
    let recipes: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    futures::future::join_all(recipes.iter().map(|recipe| ask(stream, recipe))).await
}

/// Each task waits until all are being done, which never happens one after the other.
#[tokio::test]
async fn the_module_for_python_does_as_many_things_at_once_as_it_is_given() {
    let threads = "import threading\nall_here = threading.Barrier(8)\n@task_handler\ndef do(task):\n  all_here.wait(15)\n  \
                   yield {'n': task.recipe}\nrun()";
    let tasks = "import asyncio\nhere = 0\nall_here = None\n@task_handler\nasync def do(task):\n  global here, all_here\n  \
                 all_here = all_here or asyncio.Event()\n  here += 1\n  if here == 8: all_here.set()\n  await asyncio.wait_for(all_here.wait(), 15)\n  \
                 yield {'n': task.recipe}\nrun()";
    for program in [threads, tasks] {
        let (_folder, stream) = stream_of_module(program, at_once(8));
        for (number, ended) in ask_all(&stream, 8).await.into_iter().enumerate() {
            assert_eq!(answer(ended).items[0]["n"], number.to_string());
        }
    }
}

/// Threads have small stacks, which all count in its memory.
#[tokio::test]
async fn sixteen_threads_of_the_module_for_python_fit_into_little_memory() {
    let program = "import threading\nall_here = threading.Barrier(16)\n@task_handler\ndef do(task):\n  all_here.wait(15)\n  \
                   yield {'n': task.recipe}\nrun()";
    let little = |usual| Handler { memory: bytesize::ByteSize::mb(64), ..at_once(16)(usual) };
    let (_folder, stream) = stream_of_module(program, little);
    for ended in ask_all(&stream, 16).await {
        assert_eq!(answer(ended).verdict, Verdict::Done);
    }
}

/// Its limits may let no more of them start: those that there are do all.
#[tokio::test]
async fn a_thread_that_cannot_start_ends_no_program_of_the_module_for_python() {
    for started in [0, 2] {
        let program = format!(
            "import threading\nstart = threading.Thread.start\nleft = {started}\ndef limited(thread):\n  global left\n  \
             if left == 0: raise RuntimeError(\"can't start new thread\")\n  left -= 1\n  start(thread)\n\
             threading.Thread.start = limited\n@task_handler\ndef do(task):\n  yield {{'n': task.recipe}}\nrun()"
        );
        let (_folder, stream) = stream_of_module(&program, at_once(16));
        for ended in ask_all(&stream, 32).await {
            assert_eq!(answer(ended).verdict, Verdict::Done, "{started}");
        }
    }
}

/// It is no text, though JSON may have it.
#[tokio::test]
async fn half_a_surrogate_pair_in_an_item_costs_no_other_task() {
    let program = "@task_handler\ndef do(task):\n  yield {'n': '\\ud83d' if task.recipe == '3' else task.recipe}\nrun()";
    let (_folder, stream) = stream_of_module(program, at_once(8));
    for (number, ended) in ask_all(&stream, 8).await.into_iter().enumerate() {
        let expected = if number == 3 { "?".to_owned() } else { number.to_string() };
        assert_eq!(answer(ended).items[0]["n"], expected);
    }
}

/// A connection of sqlite3, for one, is of the thread that made it.
#[tokio::test]
async fn a_spider_that_does_not_say_concurrency_has_all_done_in_the_main_thread() {
    let program = "import threading\n@task_handler\ndef do(task):\n  \
                   yield {'is_main': threading.current_thread() is threading.main_thread()}\nrun()";
    let (_folder, stream) = stream_of_module(program, |usual| usual);
    for ended in ask_all(&stream, 4).await {
        assert_eq!(answer(ended).items[0]["is_main"], true);
    }
}

#[tokio::test]
async fn a_handler_in_python_that_ends_its_program_ends_it_from_any_thread() {
    for definition in ["def", "async def"] {
        let program = format!("import sys\n@task_handler\n{definition} do(task):\n  sys.exit(3)\nrun()");
        for handler in [1, 16].map(at_once) {
            let (_folder, stream) = stream_of_module(&program, handler);
            let (what, _) = failure(ask(&stream, "x").await);
            assert!(what.contains("exited with status 3"), "{what}");
        }
    }
}
