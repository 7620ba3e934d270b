//! The pipe to a browser: commands, answers and events of the Chrome DevTools Protocol, each a JSON text that ends with
//! a zero byte.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// Maximum number of commands that are not yet written: a browser that reads none of them is lost.
const MAX_UNWRITTEN: usize = 1024;

/// Maximum number of events of a page that nobody has taken; further ones are dropped.
const MAX_EVENTS: usize = 64;

/// The connection to a browser, until it is closed by either side. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    commands: mpsc::Sender<String>,
    shared: Arc<Shared>,
}

/// The result of a command, or why the browser refuses it.
type Answer = Result<Box<RawValue>, String>;

struct Shared {
    next_id: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    sessions: Mutex<HashMap<String, mpsc::Sender<Event>>>,
    closed: CancellationToken,
}

/// The reason why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The browser refuses it, for this reason.
    Refused(String),
    /// The connection is closed.
    Closed,
}

/// An event of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its document is there, with the scripts that it waits for.
    Parsed,
    /// All that it was to load with is there.
    Loaded,
    /// It shows a dialog and waits for an answer. `is_leaving` if that asks whether to leave the page.
    Dialog { is_leaving: bool },
    /// Its process has died.
    Crashed,
    /// It was closed.
    Closed,
}

impl Event {
    fn parse(method: &str, params: Option<&RawValue>) -> Option<Self> {
        Some(match method {
            "Page.domContentEventFired" => Self::Parsed,
            "Page.loadEventFired" => Self::Loaded,
            "Page.javascriptDialogOpening" => {
                #[derive(Deserialize)]
                struct Dialog<'a> {
                    #[serde(borrow)]
                    r#type: Cow<'a, str>,
                }
                let dialog = params.and_then(|params| serde_json::from_str::<Dialog<'_>>(params.get()).ok());
                Self::Dialog { is_leaving: dialog.is_some_and(|dialog| dialog.r#type == "beforeunload") }
            }
            "Inspector.targetCrashed" => Self::Crashed,
            "Inspector.detached" => Self::Closed,
            _ => return None,
        })
    }
}

/// A message of the browser: the answer to a command, or an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

impl Connection {
    /// Starts to write commands to `to`, and to read messages of at most `most` bytes from `from`.
    pub(crate) fn start<R, W>(from: R, to: W, most: usize) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (commands, to_write) = mpsc::channel(MAX_UNWRITTEN);
        let (waiting, sessions) = Default::default();
        let closed = CancellationToken::new();
        let shared = Arc::new(Shared { next_id: AtomicU64::new(1), waiting, sessions, closed });
        let (reader, writer) = (Arc::clone(&shared), Arc::clone(&shared));
        tokio::spawn(async move {
            let reading = read(&reader, BufReader::new(from), most);
            if let Some(Err(error)) = reader.closed.run_until_cancelled(reading).await {
                debug!(%error, "the pipe of a browser broke");
            }
            reader.close();
        });
        tokio::spawn(async move {
            let _ = writer.closed.run_until_cancelled(write(to, to_write)).await;
            writer.close();
        });
        Self { commands, shared }
    }

    /// Sends a command to a session, or to the browser, and returns its result.
    pub(crate) async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Box<RawValue>, CallError> {
        let (answer, answered) = oneshot::channel();
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits::new(&self.shared, id, answer);
        self.send(id, session, method, params);
        tokio::select! {
            answer = answered => answer.map_err(|_| CallError::Closed)?.map_err(CallError::Refused),
            () = self.shared.closed.cancelled() => Err(CallError::Closed),
        }
    }

    /// Sends a command whose result does not matter.
    pub(crate) fn post(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        self.send(id, session, method, params);
    }

    fn send(&self, id: u64, session: Option<&str>, method: &str, params: Value) {
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        if self.commands.try_send(command.to_string()).is_err() {
            self.close();
        }
    }

    /// Returns the events of a session from now on.
    pub(crate) fn events(&self, session: &str) -> mpsc::Receiver<Event> {
        let (events, taken) = mpsc::channel(MAX_EVENTS);
        self.shared.sessions.lock().insert(session.to_owned(), events);
        taken
    }

    /// Forgets a session.
    pub(crate) fn forget(&self, session: &str) {
        self.shared.sessions.lock().remove(session);
    }

    /// Closes the connection. A browser whose pipe is closed ends.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Whether it is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Waits until it is closed.
    pub(crate) async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }
}

impl Shared {
    fn close(&self) {
        self.closed.cancel();
        self.waiting.lock().clear();
        self.sessions.lock().clear();
    }

    fn take(&self, message: &[u8]) -> serde_json::Result<()> {
        let Message { id, method, session_id, params, result, error } = serde_json::from_slice(message)?;
        if let Some(id) = id {
            let waiting = self.waiting.lock().remove(&id);
            let answer = match error {
                Some(Refusal { message }) => Err(message),
                None => Ok(result.unwrap_or(RawValue::NULL).to_owned()),
            };
            waiting.map(|waiting| waiting.send(answer));
        } else if let (Some(method), Some(session)) = (method, session_id)
            && let Some(event) = Event::parse(&method, params)
            && let Some(events) = self.sessions.lock().get(&*session)
        {
            let _ = events.try_send(event);
        }
        Ok(())
    }
}

/// A command that waits for its answer, until this is dropped: a page that has crashed never answers.
struct Waits<'a> {
    shared: &'a Shared,
    id: u64,
}

impl<'a> Waits<'a> {
    fn new(shared: &'a Shared, id: u64, answer: oneshot::Sender<Answer>) -> Self {
        shared.waiting.lock().insert(id, answer);
        Self { shared, id }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.shared.waiting.lock().remove(&self.id);
    }
}

async fn write(mut to: impl AsyncWrite + Unpin, mut commands: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(command) = commands.recv().await {
        to.write_all(command.as_bytes()).await?;
        to.write_all(&[0]).await?;
        to.flush().await?;
    }
    Ok(())
}

async fn read(shared: &Shared, mut from: impl AsyncBufRead + Unpin, most: usize) -> io::Result<()> {
    let mut message = Vec::new();
    loop {
        let available = from.fill_buf().await?;
        if available.is_empty() {
            return Ok(());
        }
        let end = available.iter().position(|byte| *byte == 0);
        let count = end.unwrap_or(available.len());
        if message.len() + count > most {
            return Err(io::Error::other(format!("a message of more than {most} bytes")));
        }
        message.extend_from_slice(&available[..count]);
        from.consume(count + usize::from(end.is_some()));
        if end.is_some() {
            shared.take(&message).map_err(io::Error::other)?;
            message.clear();
            // A page may have been large.
            message.shrink_to(1 << 16);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    /// Returns a connection with the browser's end of it.
    fn connected() -> (Connection, DuplexStream) {
        let (near, far) = duplex(1 << 16);
        let (from, to) = tokio::io::split(near);
        (Connection::start(from, to, 1_000), far)
    }

    async fn say(browser: &mut DuplexStream, message: &str) {
        browser.write_all(format!("{message}\0").as_bytes()).await.unwrap();
    }

    async fn hear(browser: &mut DuplexStream) -> Value {
        let mut command = Vec::new();
        BufReader::new(browser).read_until(0, &mut command).await.unwrap();
        serde_json::from_slice(&command[..command.len() - 1]).unwrap()
    }

    #[tokio::test]
    async fn a_command_gets_its_own_answer() {
        let (connection, mut browser) = connected();
        let calling = connection.call(Some("S"), "Page.enable", json!({ "a": 1 }));
        let answering = async {
            let command = hear(&mut browser).await;
            assert_eq!(
                (&command["method"], &command["sessionId"], &command["params"]),
                (&json!("Page.enable"), &json!("S"), &json!({ "a": 1 }))
            );
            say(&mut browser, r#"{"id":999,"result":{"of":"another"}}"#).await;
            say(&mut browser, &json!({ "id": command["id"], "result": { "b": 2 } }).to_string()).await;
        };
        let (result, ()) = tokio::join!(calling, answering);
        assert_eq!(result.unwrap().get(), r#"{"b":2}"#);
    }

    #[tokio::test]
    async fn a_refusal_says_why_and_an_answer_that_never_comes_leaves_nothing_behind() {
        let (connection, mut browser) = connected();
        let answering = async {
            let id = hear(&mut browser).await["id"].clone();
            say(
                &mut browser,
                &json!({ "id": id, "error": { "code": 1, "message": "no such page" } }).to_string(),
            )
            .await;
        };
        let (refused, ()) = tokio::join!(connection.call(None, "x", json!({})), answering);
        assert_eq!(refused.unwrap_err(), CallError::Refused("no such page".to_owned()));
        let never = timeout(Duration::from_millis(10), connection.call(None, "x", json!({}))).await;
        assert!(never.is_err() && connection.shared.waiting.lock().is_empty());
    }

    #[tokio::test]
    async fn each_page_gets_its_own_events() {
        let (connection, mut browser) = connected();
        let (mut first, mut second) = (connection.events("1"), connection.events("2"));
        for (session, method) in
            [("2", "Page.loadEventFired"), ("1", "Page.other"), ("1", "Inspector.targetCrashed")]
        {
            say(&mut browser, &json!({ "method": method, "sessionId": session, "params": {} }).to_string())
                .await;
        }
        let dialog = json!({ "method": "Page.javascriptDialogOpening", "sessionId": "1", "params": { "type": "beforeunload" } });
        say(&mut browser, &dialog.to_string()).await;
        assert_eq!(first.recv().await, Some(Event::Crashed));
        assert_eq!(first.recv().await, Some(Event::Dialog { is_leaving: true }));
        assert_eq!(second.recv().await, Some(Event::Loaded));
    }

    #[tokio::test]
    async fn what_is_too_long_or_no_message_closes_it_and_so_does_the_end_of_the_browser() {
        for said in [&b"{}\0nonsense\0"[..], &[b'x'; 1_001], b""] {
            let (connection, mut browser) = connected();
            let mut events = connection.events("1");
            browser.write_all(said).await.unwrap();
            if said.is_empty() {
                drop(browser);
            }
            assert_eq!(events.recv().await, None);
            connection.closed().await;
            assert_eq!(connection.call(None, "x", json!({})).await.unwrap_err(), CallError::Closed);
        }
    }
}
