//! The two pipes between a worker and a program that lives. Each has a task of its own: a program that writes before it reads must not
//! keep either from the other.

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use trawl_common::handler::{MAX_ANSWER_BYTES, Part};

use crate::output::{self, Flood};

/// How much of what was read may wait to be taken.
const READ_AHEAD: usize = 64;

/// A longer buffer than usual: answers come in lines of kilobytes.
const BUFFER: usize = 64 * 1024;

/// What a program said.
pub(super) enum Said {
    /// A part of an answer, and how many bytes it counts as.
    Part(Part, usize),
    /// What is none: what is wrong with it.
    Wrong(String),
}

/// Both pipes.
pub(super) struct Pipes {
    say: mpsc::UnboundedSender<String>,
    said: mpsc::Receiver<Said>,
    /// Ended with this.
    _tasks: JoinSet<()>,
}

impl Pipes {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        // Bounded by what may be in flight.
        let (say, to_say) = mpsc::unbounded_channel();
        let (to_said, said) = mpsc::channel(READ_AHEAD);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(to_say, stdin));
        tasks.spawn(read(stdout, to_said));
        Self { say, said, _tasks: tasks }
    }

    /// Says a line, when the program reads it.
    pub(super) fn say(&self, line: String) {
        // A program that has closed its input says so by its deadline, or by its end.
        let _ = self.say.send(line);
    }

    /// What the program says next; `None` when it says no more. Cancelling the call loses nothing.
    pub(super) async fn next(&mut self) -> Option<Said> {
        self.said.recv().await
    }
}

async fn write(mut lines: mpsc::UnboundedReceiver<String>, mut stdin: ChildStdin) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads until what is read is no answer.
async fn read(stdout: ChildStdout, said: mpsc::Sender<Said>) {
    let mut stdout = BufReader::with_capacity(BUFFER, stdout);
    let mut line = Vec::new();
    loop {
        let next = match output::line(&mut stdout, &mut line, MAX_ANSWER_BYTES).await {
            Ok(false) => return,
            Ok(true) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(true) => match Part::weighed(&line) {
                Ok((part, weight)) => Said::Part(part, weight),
                Err(error) => Said::Wrong(format!("wrote a line that is no answer: {error}")),
            },
            Err(Flood) => Said::Wrong(format!("wrote a line of more than {} MB", MAX_ANSWER_BYTES >> 20)),
        };
        let is_wrong = matches!(next, Said::Wrong(_));
        if said.send(next).await.is_err() || is_wrong {
            return;
        }
    }
}
