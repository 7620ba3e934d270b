//! Steps in a page. Each is tried until the page is ready for it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use trawl_common::spider::Target;

use super::{PageError, Tab};

/// The result of an attempt at a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// It is done.
    Done,
    /// The page is not ready for it, for this reason.
    NotYet(String),
}

/// The answer of a script that looks for an element.
#[derive(Deserialize)]
#[serde(untagged)]
enum Found {
    NotYet(String),
    /// The point of the view where it is.
    At(f64, f64),
    Done(()),
}

/// Returns the point where the element can be clicked. A link may be in two lines.
const CLICK: &str = "
if (found.disabled) return 'what is found is disabled';
found.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
const box = [...found.getClientRects()].find(box => box.width && box.height);
if (!box) return 'what is found is not shown';
const at = [box.x + box.width / 2, box.y + box.height / 2];
const hit = found.getRootNode().elementFromPoint(...at);
if (hit && (found.contains(hit) || hit.closest('label')?.control === found)) return at;
return `what is found is behind ${hit?.outerHTML.slice(0, 60) ?? 'something else'}`;";

const FILL: &str = "
if (found.disabled || found.readOnly) return 'what is found cannot be changed';
found.focus();
if (found.isContentEditable) found.textContent = text;
else if (found.matches('input:not([type=checkbox], [type=radio], [type=file]), textarea')) found.value = text;
else throw 'what is found is no field for a text';";

const SELECT: &str = "
if (!found.matches('select')) throw 'what is found is no list of options';
if (found.disabled) return 'what is found is disabled';
const options = [...found.options], option = options.find(one => one.value === text) ?? options.find(one => one.text === text);
if (!option) return `it has no option ${text}`;
found.focus();
option.selected = true;";

/// Tells the page of a change, as a browser would.
const CHANGED: &str = "
for (const type of ['input', 'change']) found.dispatchEvent(new Event(type, { bubbles: true }));";

/// Scrolls to its end what the mouse wheel would scroll in the middle of the view, and returns its height.
const SCROLL: &str = "(() => {
let box = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
const scrolls = box => box.scrollHeight > box.clientHeight && /auto|scroll/.test(getComputedStyle(box).overflowY);
while (box && !scrolls(box)) box = box.parentElement;
box ??= document.scrollingElement ?? document.documentElement;
box.scrollTo({ top: box.scrollHeight, behavior: 'instant' });
return box.scrollHeight })()";

impl Tab {
    /// Looks for an element.
    ///
    /// # Errors
    /// Fails as the page does, or if the browser cannot read the selector.
    pub async fn look_for(&mut self, target: &Target) -> Result<Attempt, PageError> {
        self.with(target, "", "").await.map(Found::into_attempt)
    }

    /// Looks for a text.
    ///
    /// # Errors
    /// Fails as the page does.
    pub async fn look_for_text(&mut self, text: &str) -> Result<Attempt, PageError> {
        let script = format!("!!document.body?.innerText.includes({})", json!(text));
        Ok(match self.attempted(&script).await? {
            Some(true) => Attempt::Done,
            _ => Attempt::NotYet("it is not shown".to_owned()),
        })
    }

    /// Clicks an element as a person would.
    ///
    /// # Errors
    /// Fails as the page does, or if the browser cannot read the selector.
    pub async fn click(&mut self, target: &Target) -> Result<Attempt, PageError> {
        match self.with(target, CLICK, "").await? {
            Found::At(x, y) => {
                self.click_at((x, y)).await?;
                Ok(Attempt::Done)
            }
            found => Ok(found.into_attempt()),
        }
    }

    /// Puts a text into a field.
    ///
    /// # Errors
    /// Fails as the page does, if the browser cannot read the selector, or it leads to something else.
    pub async fn fill(&mut self, target: &Target, text: &str) -> Result<Attempt, PageError> {
        self.with(target, &format!("{FILL}{CHANGED}"), text).await.map(Found::into_attempt)
    }

    /// Chooses the option of a list that has this value or text.
    ///
    /// # Errors
    /// Fails as the page does, if the browser cannot read the selector, or it leads to something else.
    pub async fn select(&mut self, target: &Target, option: &str) -> Result<Attempt, PageError> {
        self.with(target, &format!("{SELECT}{CHANGED}"), option).await.map(Found::into_attempt)
    }

    /// Scrolls the page to its end, and returns its height.
    ///
    /// # Errors
    /// Fails as the page does.
    pub async fn scroll(&mut self) -> Result<f64, PageError> {
        Ok(self.attempted(SCROLL).await?.unwrap_or_default())
    }

    /// Leaves the page for a URL, which may be relative to it.
    ///
    /// # Errors
    /// Fails as the page does.
    pub async fn leave_for(&mut self, url: &str) -> Result<(), PageError> {
        self.evaluate_apart(&format!("void location.assign({})", json!(url))).await
    }

    /// Does something with an element, if it is there.
    async fn with(&mut self, target: &Target, script: &str, text: &str) -> Result<Found, PageError> {
        let find = match target {
            Target::Css(css) => format!("document.querySelector({})", json!(css.value)),
            Target::XPath(xpath) => {
                format!("document.evaluate({}, document, null, 9).singleNodeValue", json!(xpath.value))
            }
        };
        let script = format!(
            "(() => {{ const text = {}, found = {find}; if (!found) return 'nothing is found';{script}\nreturn null }})()",
            json!(text)
        );
        let gone = || Found::NotYet("the page goes to another document".to_owned());
        Ok(self.attempted(&script).await?.unwrap_or_else(gone))
    }

    /// Returns the value of an expression; `None` if the document goes meanwhile.
    async fn attempted<T: DeserializeOwned>(&mut self, script: &str) -> Result<Option<T>, PageError> {
        match self.evaluate_apart(script).await {
            Err(PageError::Refused(_)) => Ok(None),
            value => value.map(Some),
        }
    }
}

impl Found {
    fn into_attempt(self) -> Attempt {
        match self {
            Self::NotYet(why) => Attempt::NotYet(why),
            Self::At(..) | Self::Done(()) => Attempt::Done,
        }
    }
}
