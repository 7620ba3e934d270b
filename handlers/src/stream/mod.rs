//! A program that lives, and is given tasks and pages.
//!
//! One `driver` owns it: starts it when there is something to do, and again when it has died. As long as one process lives
//! (`session`), requests go to it and answers come from it through `pipes`.

mod driver;
mod own_log;
mod pipes;
mod session;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use trawl_common::handler::stream::{FailureView, PageHead, ResponseHead};
use trawl_common::task::TaskView;

use self::driver::Driver;
use crate::ended::Ended;
use crate::program::Program;

/// Requests that may wait for the driver; each caller waits for its own.
const WAITING: usize = 64;

/// How many requests a program is given at once that does not say so itself.
const USUAL_CONCURRENCY: usize = 16;

/// Something for a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Do this.
    Task(TaskView),
    /// Read this.
    Page(Page),
}

/// A page for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Which page.
    pub head: PageHead,
    /// What came of asking for it.
    pub came: Came,
}

/// What came of asking for a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// A response.
    Response(Response),
    /// None that is a page.
    Failure(FailureView),
}

/// A response to a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// All but its body.
    pub head: ResponseHead,
    /// Its body as it arrived.
    pub bytes: Bytes,
    /// Its body as text, if it is text.
    pub text: Option<String>,
}

/// A program that lives. Dropping it ends the program, when it has answered all that it was asked.
#[derive(Debug)]
pub struct Stream {
    program: Arc<Program>,
    /// Where the driver takes requests, once there was one.
    requests: OnceLock<mpsc::Sender<Asked>>,
}

/// A request, and where its answer is awaited.
struct Asked {
    work: Arc<Work>,
    reply: oneshot::Sender<Ended>,
}

impl Asked {
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn ends(self, ended: Ended) {
        // Whoever asked may have gone.
        let _ = self.reply.send(ended);
    }
}

impl Stream {
    /// A program that is started when it is asked first.
    pub fn new(program: Arc<Program>) -> Self {
        Self { program, requests: OnceLock::new() }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    fn requests(&self) -> &mpsc::Sender<Asked> {
        self.requests.get_or_init(|| {
            let (requests, to_driver) = mpsc::channel(WAITING);
            let program = Arc::clone(&self.program);
            let concurrency = program.handler.concurrency.map_or(USUAL_CONCURRENCY, usize::from);
            tokio::spawn(Driver::new(program, concurrency, to_driver).run());
            requests
        })
    }

    /// Has the program do something, as soon as its `concurrency` allows. If the future is dropped, the answer is dropped as well.
    pub async fn ask(&self, work: Work) -> Ended {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { work: Arc::new(work), reply };
        let lost = || Ended::NotRun("what runs the program has ended".to_owned());
        match self.requests().send(asked).await {
            Ok(()) => answer.await.unwrap_or_else(|_| lost()).checked().await,
            Err(_) => lost(),
        }
    }
}
