//! One page in a browser, in a context of its own.

mod evaluate;
mod input;
mod picture;
mod steps;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::browser::Browser;
use crate::connection::{CallError, Event};
use crate::lease::Lease;

pub use self::steps::Attempt;

/// Maximum time until a page gives its document, which its scripts may delay.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a page has no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Its browser has died, or does not answer. The page is not to blame.
    #[error("its browser was lost")]
    Lost,
    /// Its process has died.
    #[error("it made the browser's process for it crash")]
    Crashed,
    /// It has closed itself.
    #[error("it closed itself")]
    Closed,
    /// The browser does not show it, for this reason.
    #[error("the browser does not show it: {0}")]
    NotShown(String),
    /// Its scripts do not end.
    #[error("its scripts do not end")]
    Endless,
    /// Its document has more than the allowed number of characters.
    #[error("it has {0} characters once it is rendered, more than `fetch.max_body`")]
    TooLarge(u64),
    /// A script in it throws this.
    #[error("{0}")]
    Threw(String),
    /// The browser refuses a command, for this reason.
    #[error("the browser refuses: {0}")]
    Refused(String),
}

impl From<CallError> for PageError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed => Self::Lost,
            CallError::Refused(why) => Self::Refused(why),
        }
    }
}

/// The document of a page as its scripts have left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The document as HTML.
    pub html: String,
    /// Its URL, if scripts have led the page to another document.
    pub landed: Option<String>,
}

/// One page in a browser. Its context and all that it has stored go when this is dropped.
pub struct Tab {
    context: Context,
    target: String,
    session: String,
    events: mpsc::Receiver<Event>,
    /// The load that the tab was opened for.
    loader: Option<String>,
    parsed: bool,
    loaded: CancellationToken,
}

/// A context of a browser: its own cookies, caches, connections and proxy.
struct Context {
    browser: Arc<Browser>,
    id: String,
    /// The place in the browser; `None` for its self-test.
    lease: Option<Lease>,
}

impl Drop for Context {
    fn drop(&mut self) {
        let dispose = json!({ "browserContextId": self.id });
        self.browser.connection.post(None, "Target.disposeBrowserContext", dispose);
    }
}

impl Tab {
    /// Opens a tab that has nothing of any other, and no way to the network but the proxy at this address.
    ///
    /// # Errors
    /// Fails if the browser is lost.
    pub async fn open(lease: Lease, proxy: SocketAddr, user_agent: &str) -> Result<Self, PageError> {
        Self::open_in(Arc::clone(lease.browser()), Some(lease), proxy, user_agent).await
    }

    pub(crate) async fn open_in(
        browser: Arc<Browser>,
        lease: Option<Lease>,
        proxy: SocketAddr,
        user_agent: &str,
    ) -> Result<Self, PageError> {
        let create = json!({ "proxyServer": format!("http://{proxy}"), "proxyBypassList": "<-loopback>" });
        let created = browser.call("Target.createBrowserContext", create).await?;
        let context =
            Context { browser: Arc::clone(&browser), id: text(&created, "browserContextId")?, lease };
        let deny = json!({ "behavior": "deny", "browserContextId": context.id });
        browser.call("Browser.setDownloadBehavior", deny).await?;
        let blank = json!({ "url": "about:blank", "browserContextId": context.id });
        let target = text(&browser.call("Target.createTarget", blank).await?, "targetId")?;
        let attach = json!({ "targetId": target, "flatten": true });
        let session = text(&browser.call("Target.attachToTarget", attach).await?, "sessionId")?;
        let events = browser.connection.events(&session);
        let loaded = CancellationToken::new();
        let mut tab = Self { context, target, session, events, loader: None, parsed: false, loaded };
        for (method, params) in [
            ("Inspector.enable", json!({})),
            ("Page.enable", json!({})),
            // Of several pages only one has it otherwise.
            ("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })),
            ("Emulation.setUserAgentOverride", json!({ "userAgent": user_agent })),
        ] {
            tab.call(method, params).await?;
        }
        Ok(tab)
    }

    /// Goes to a URL.
    ///
    /// # Errors
    /// Fails if the browser does not show what is there.
    pub async fn go(&mut self, url: &str) -> Result<(), PageError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Gone {
            loader_id: Option<String>,
            error_text: Option<String>,
        }
        let gone: Gone = parsed(&self.call("Page.navigate", json!({ "url": url })).await?)?;
        self.loader = gone.loader_id;
        match gone.error_text {
            Some(why) => Err(PageError::NotShown(why)),
            None => Ok(()),
        }
    }

    /// Returns a token that is cancelled when all that the page was to load with is there.
    pub fn loaded(&self) -> CancellationToken {
        self.loaded.clone()
    }

    /// Whether the page's document is there, with the scripts that it waits for.
    pub fn is_parsed(&self) -> bool {
        self.parsed
    }

    /// Answers the page while something else goes on, and returns the result of that.
    ///
    /// # Errors
    /// Fails as soon as the page does.
    pub async fn during<T>(&mut self, other: impl Future<Output = T>) -> Result<T, PageError> {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                result = &mut other => return Ok(result),
                event = self.events.recv() => self.answer(event)?,
            }
        }
    }

    /// Returns the document, if it has at most `most` characters.
    ///
    /// # Errors
    /// Fails if it is larger, or does not come within a few seconds.
    pub async fn document(&mut self, most: u64) -> Result<Document, PageError> {
        timeout(DOCUMENT_TIMEOUT, self.read(most)).await.map_err(|_| PageError::Endless)?
    }

    /// Returns the URL of the document that the tab shows, if that is another than it went to.
    async fn landed(&mut self) -> Result<Option<String>, PageError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tree {
            frame_tree: Top,
        }
        #[derive(Deserialize)]
        struct Top {
            frame: Frame,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Frame {
            loader_id: String,
            url: String,
        }
        let tree: Tree = parsed(&self.call("Page.getFrameTree", json!({})).await?)?;
        let Frame { loader_id, url } = tree.frame_tree.frame;
        Ok((Some(loader_id) != self.loader).then_some(url))
    }

    async fn read(&mut self, most: u64) -> Result<Document, PageError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Read {
            Html(String),
            TooLarge(u64),
        }
        match self.evaluate_apart(&expression(most)).await? {
            Read::Html(html) => {
                let landed = self.landed().await?;
                self.context.lease.iter().for_each(Lease::count_rendered);
                Ok(Document { html, landed })
            }
            Read::TooLarge(length) => Err(PageError::TooLarge(length)),
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Box<RawValue>, PageError> {
        let (connection, session) = (self.context.browser.connection.clone(), self.session.clone());
        let calling = connection.call(Some(&session), method, params);
        Ok(self.during(calling).await??)
    }

    fn post(&self, method: &str, params: Value) {
        self.context.browser.connection.post(Some(&self.session), method, params);
    }

    fn answer(&mut self, event: Option<Event>) -> Result<(), PageError> {
        match event {
            Some(Event::Parsed) => self.parsed = true,
            Some(Event::Loaded) => self.loaded.cancel(),
            Some(Event::Dialog { is_leaving }) => {
                self.post("Page.handleJavaScriptDialog", json!({ "accept": is_leaving }));
            }
            Some(Event::Crashed) => return Err(PageError::Crashed),
            Some(Event::Closed) => return Err(PageError::Closed),
            None => return Err(PageError::Lost),
        }
        Ok(())
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        // A process with a script that does not end would outlive its page.
        self.post("Runtime.terminateExecution", json!({}));
        self.context.browser.connection.forget(&self.session);
    }
}

/// Returns the script that gives the document as HTML, or its length if it has more than `most` characters.
fn expression(most: u64) -> String {
    format!(
        "(() => {{ const type = document.doctype && new XMLSerializer().serializeToString(document.doctype); \
         const html = (type ? type + '\\n' : '') + (document.documentElement?.outerHTML ?? ''); \
         return html.length > {most} ? html.length : html }})()"
    )
}

fn parsed<'a, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, PageError> {
    serde_json::from_str(result.get()).map_err(|error| PageError::Refused(error.to_string()))
}

fn text(result: &Value, key: &str) -> Result<String, PageError> {
    let text = result[key].as_str().map(str::to_owned);
    text.ok_or_else(|| PageError::Refused(format!("its answer has no `{key}`")))
}
