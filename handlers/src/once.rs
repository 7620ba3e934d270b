//! Programs that are started for one task.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use trawl_common::handler::once::{MAX_ARGUMENT_BYTES, ON_STANDARD_INPUT, answer};
use trawl_common::handler::{Answer, MAX_ANSWER_BYTES, Verdict};
use trawl_common::task::TaskView;

use crate::ended::{Ended, stderr_entry};
use crate::exec::Report;
use crate::output::{self, Flood};
use crate::program::Program;
use crate::supervised::{End, Supervised};

/// Runs a program for one task: `run <task-json> <secret-json>`, with the task on standard input as well. Dropping the
/// future ends the program.
///
/// 1. Starts it under its supervisor.
/// 2. Reads all its output, up to the time limit.
/// 3. Waits until it and all processes that it started have ended, or ends them.
/// 4. Parses the answer from the output, and takes the file of items that it names.
pub async fn once(program: &Program, task: &TaskView) -> Ended {
    let json = task.to_json();
    let argument = if json.len() > MAX_ARGUMENT_BYTES { ON_STANDARD_INPUT } else { &json };
    let (id, attempt) = (task.id.to_string(), task.attempt.to_string());
    let variables = [("TRAWL_CRAWL", task.crawl.as_str()), ("TRAWL_TASK", &id), ("TRAWL_ATTEMPT", &attempt)];
    let started =
        Supervised::start(program, Some(task), &[argument, program.handler.secret.reveal()], &variables);
    let (mut running, stdin, stdout) = match started {
        Ok(started) => started,
        Err(error) => return Ended::NotRun(error.to_string()),
    };
    // If a supervisor was killed, processes left by its program keep standard output open until they are killed too.
    let whole = async {
        tokio::try_join!(output::all(stdout, MAX_ANSWER_BYTES), async { Ok(running.ended().await) })
    };
    let limit = program.handler.timeout;
    // In a task of its own: if the program does not read its input, writing blocks until the program has ended.
    let feeding = tokio::spawn(feed(stdin, json));
    let whole = timeout(limit, whole).await;
    feeding.abort();
    match whole {
        Ok(Ok((output, end))) => {
            let ended = match judge(output, end).await {
                Ended::Answered(answer, _) => {
                    let taken = running.take_items(&answer);
                    Ended::answered(answer, taken)
                }
                failed => failed,
            };
            running.stop().await;
            ended.checked().await
        }
        Ok(Err(Flood)) => {
            let most = MAX_ANSWER_BYTES >> 20;
            let what = format!(
                "wrote more than {most} MB to its standard output: more items may be in a file (`items_file`)"
            );
            Ended::failed(&what, &running.stop().await, Vec::new())
        }
        Err(_) => Ended::failed(&overdue(limit), &running.stop().await, Vec::new()),
    }
}

/// Returns the message for a program that took too long.
pub(crate) fn overdue(limit: Duration) -> String {
    format!("took longer than {limit:?}")
}

/// Writes the task to standard input. Errors are ignored: the program need not read it.
async fn feed(mut stdin: ChildStdin, mut json: String) {
    json.push('\n');
    let _ = stdin.write_all(json.as_bytes()).await;
}

/// Decides on the outcome. A success counts only if the program exited with 0; a failure that it reports counts however
/// it ended.
async fn judge(output: Vec<u8>, end: End) -> Ended {
    // On a thread that may block: megabytes of brackets take long to parse.
    let found = match output.len() {
        0..=65_536 => answer(&output),
        _ => match spawn_blocking(move || answer(&output)).await {
            Ok(found) => found,
            Err(_) => return Ended::failed("wrote what cannot be read", &end, Vec::new()),
        },
    };
    match (found, &end.report) {
        (Ok(answer @ Answer { verdict: Verdict::Failed, .. }), _) => {
            let mut answer = answer;
            answer.logs.extend(stderr_entry(&end));
            Ended::Answered(answer, None)
        }
        (Ok(answer), Some(Report::Exited(0))) => Ended::Answered(answer, None),
        (Err(error), Some(Report::Exited(0))) => Ended::failed(&error.to_string(), &end, Vec::new()),
        (found, _) => Ended::failed(&end.how(), &end, found.map(|answer| answer.logs).unwrap_or_default()),
    }
}
