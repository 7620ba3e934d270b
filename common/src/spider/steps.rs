//! `steps`: what a browser does in a page before the page is read.

use std::fmt;
use std::num::NonZeroU16;
use std::time::Duration;

use super::Selector;
use crate::mistake::Sited;

/// A step in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageStep {
    /// The action.
    pub action: Action,
    /// Maximum time that it may take; `None` for that of a request.
    pub within: Option<Duration>,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `wait`: the page goes on until this holds.
    Wait(Awaited),
    /// `click`: an element is clicked.
    Click(Target),
    /// `fill`: a text is put into a field of a form.
    Fill(Target, String),
    /// `select`: an option of a list is chosen, by its value or by its text.
    Select(Target, String),
    /// `press`: a key is pressed.
    Press(PageKey),
    /// `scroll`: the page is scrolled to its end until it has no more, or this many times.
    Scroll(NonZeroU16),
    /// `evaluate`: a script of the spider runs in the page.
    Evaluate(String),
    /// `goto`: the page goes to a URL, which may be relative.
    Goto(String),
}

/// A condition that a step waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// An element is there.
    Element(Target),
    /// The page shows a text.
    Text(String),
    /// The page asks for nothing more.
    Rest,
}

/// A selector of an element in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A CSS selector.
    Css(Sited<String>),
    /// An XPath 1.0 expression.
    XPath(Sited<String>),
}

/// A key that a step may press, by the name that browsers give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
pub enum PageKey {
    /// `Enter`
    Enter,
    /// `Tab`
    Tab,
    /// `Escape`
    Escape,
    /// `Backspace`
    Backspace,
    /// `Delete`
    Delete,
    /// `ArrowUp`
    ArrowUp,
    /// `ArrowDown`
    ArrowDown,
    /// `ArrowLeft`
    ArrowLeft,
    /// `ArrowRight`
    ArrowRight,
    /// `PageUp`
    PageUp,
    /// `PageDown`
    PageDown,
    /// `Home`
    Home,
    /// `End`
    End,
}

impl PageStep {
    /// The longest time limit of a step.
    pub const MAX_WITHIN: Duration = Duration::from_secs(300);
}

impl Action {
    /// Number of screens after which a page that has ever more to show is read.
    pub const MAX_SCREENS: NonZeroU16 = NonZeroU16::new(200).expect("it is more than 0");

    /// Returns the element that it is for.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Wait(Awaited::Element(target))
            | Self::Click(target)
            | Self::Fill(target, _)
            | Self::Select(target, _) => Some(target),
            Self::Wait(Awaited::Text(_) | Awaited::Rest)
            | Self::Press(_)
            | Self::Scroll(_)
            | Self::Evaluate(_)
            | Self::Goto(_) => None,
        }
    }

    /// Returns its key in a spider's file.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Wait(_) => "wait",
            Self::Click(_) => "click",
            Self::Fill(..) => "fill",
            Self::Select(..) => "select",
            Self::Press(_) => "press",
            Self::Scroll(_) => "scroll",
            Self::Evaluate(_) => "evaluate",
            Self::Goto(_) => "goto",
        }
    }
}

impl From<&Target> for Selector {
    fn from(target: &Target) -> Self {
        match target {
            Target::Css(text) => Self::Text(text.clone()),
            Target::XPath(text) => Self::XPath(text.clone()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Css(text) | Self::XPath(text)) = self;
        f.write_str(&text.value)
    }
}

/// A step in a line, without texts that may be secret or long.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())?;
        match self {
            Self::Wait(Awaited::Text(text)) => write!(f, " for the text `{text}`"),
            Self::Wait(Awaited::Rest) => f.write_str(" for rest"),
            Self::Press(key) => write!(f, " {}", <&str>::from(key)),
            Self::Goto(url) => write!(f, " {url}"),
            Self::Scroll(_) | Self::Evaluate(_) => Ok(()),
            Self::Wait(Awaited::Element(target))
            | Self::Click(target)
            | Self::Fill(target, _)
            | Self::Select(target, _) => write!(f, " `{target}`"),
        }
    }
}
