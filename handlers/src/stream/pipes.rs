//! The two pipes between a worker and a program that stays alive. Each has a task of its own, so that a program that
//! writes before it reads blocks neither.

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use trawl_common::handler::{MAX_ANSWER_BYTES, Part};

use crate::output::{self, Flood};

/// Maximum number of messages that are read ahead.
const READ_AHEAD: usize = 64;

/// Size in bytes of the read buffer, larger than the default: answers are lines of kilobytes.
const BUFFER: usize = 64 * 1024;

/// A message from the program.
pub(super) enum Said {
    /// A part of an answer, and the number of bytes that it counts as.
    Part(Part, usize),
    /// Not a valid answer; says why.
    Wrong(String),
}

/// Both pipes.
pub(super) struct Pipes {
    say: mpsc::UnboundedSender<String>,
    said: mpsc::Receiver<Said>,
    /// The tasks, which end when this is dropped.
    _tasks: JoinSet<()>,
}

impl Pipes {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        // Unbounded here: the number of requests in flight bounds it.
        let (say, to_say) = mpsc::unbounded_channel();
        let (to_said, said) = mpsc::channel(READ_AHEAD);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(to_say, stdin));
        tasks.spawn(read(stdout, to_said));
        Self { say, said, _tasks: tasks }
    }

    /// Sends a line, without waiting until the program reads it.
    pub(super) fn say(&self, line: String) {
        // If the program has closed its input, its deadline or its end will show it.
        let _ = self.say.send(line);
    }

    /// Returns the program's next message, or `None` at the end of its output. Cancel safe.
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

/// Reads messages until the end, or until one that is not valid.
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
