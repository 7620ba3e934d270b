//! A program that stays alive, and is given tasks and pages.
//!
//! One `driver` owns it, starts it when there is a request, and restarts it when it has died. While a process lives
//! (`session`), requests and answers pass through `pipes`.

mod driver;
mod load;
mod own_log;
mod pipes;
mod session;
mod trouble;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use trawl_common::handler::stream::{FailureView, PageHead, ResponseHead};
use trawl_common::task::TaskView;

use self::driver::Driver;
use self::load::Load;
use self::trouble::Trouble;
use crate::ended::Ended;
use crate::program::Program;

/// Maximum number of requests that wait for the driver; callers beyond that wait to send theirs.
const MAX_WAITING: usize = 64;

/// Number of requests given to a program at once if its settings don't say.
const DEFAULT_CONCURRENCY: usize = 16;

/// A request for a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Do a task.
    Task(TaskView),
    /// Read a page.
    Page(Page),
}

/// A page for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The page's identity and metadata.
    pub head: PageHead,
    /// The result of fetching it.
    pub came: Came,
}

/// The result of fetching a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// A response.
    Response(Response),
    /// A failure, without a response that is a page.
    Failure(FailureView),
}

/// A response with a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Everything but the body.
    pub head: ResponseHead,
    /// The body as received.
    pub bytes: Bytes,
    /// The body as text, if it is text.
    pub text: Option<String>,
}

/// A program that stays alive. Dropping it ends the program, once it has answered all requests.
#[derive(Debug)]
pub struct Stream {
    program: Arc<Program>,
    /// The channel to the driver and its task, which is started with the first request.
    requests: OnceLock<(mpsc::Sender<Asked>, JoinHandle<()>)>,
    trouble: Arc<Trouble>,
    load: Load,
}

/// A request, and the channel for its answer.
struct Asked {
    work: Arc<Work>,
    reply: oneshot::Sender<Ended>,
}

impl Asked {
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn end(self, ended: Ended) {
        // The caller may be gone.
        let _ = self.reply.send(ended);
    }
}

impl Stream {
    /// Returns a program that is started with its first request.
    pub fn new(program: Arc<Program>) -> Self {
        Self { program, requests: OnceLock::new(), trouble: Arc::default(), load: Load::default() }
    }

    /// Returns the reason why the program is given nothing now: it cannot be started, or ends before it is given
    /// anything. `None` if no problem is known, or it is time to try it again.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.now()
    }

    fn concurrency(&self) -> usize {
        self.program.handler.concurrency.map_or(DEFAULT_CONCURRENCY, usize::from)
    }

    /// Returns the number of requests that have waited for the program all the time since the last call; `None` if they
    /// are fewer than it is given at once.
    pub fn behind(&self) -> Option<usize> {
        let concurrency = self.concurrency();
        self.load.take_least().checked_sub(concurrency).filter(|waiting| *waiting >= concurrency)
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    fn requests(&self) -> &mpsc::Sender<Asked> {
        let (requests, _) = self.requests.get_or_init(|| {
            let (requests, to_driver) = mpsc::channel(MAX_WAITING);
            let program = Arc::clone(&self.program);
            let concurrency = self.concurrency();
            let trouble = Arc::clone(&self.trouble);
            (requests, tokio::spawn(Driver::new(program, concurrency, to_driver, trouble).run()))
        });
        requests
    }

    /// Ends the program, once it has answered all requests, and waits for that: until then it may write to its standard
    /// error.
    pub async fn end(self) {
        if let Some((requests, driver)) = self.requests.into_inner() {
            drop(requests);
            // A panic was logged where it happened.
            let _ = driver.await;
        }
    }

    /// Gives the program a request, once its `concurrency` allows, and waits for the answer. If the future is dropped,
    /// so is the answer.
    pub async fn ask(&self, work: Work) -> Ended {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { work: Arc::new(work), reply };
        let _unanswered = self.load.begin();
        let lost = || Ended::NotRun("what runs the program has ended".to_owned());
        match self.requests().send(asked).await {
            Ok(()) => answer.await.unwrap_or_else(|_| lost()).checked().await,
            Err(_) => lost(),
        }
    }
}
