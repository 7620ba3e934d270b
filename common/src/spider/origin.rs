//! The origin of the text of a spider's file.

use crate::settings;

/// The origin of the text of a spider's file, which decides what it may use of the machine that runs it.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A file of this machine, written by someone who controls it.
    Local,
    /// A file of a project's code that was fetched by Git: it may say which program is run, and is confined as a delivered
    /// text in all else; so are the variables of its program's secret.
    Fetched(&'a settings::Spiders),
    /// A text that a crawl or a caller brought. It names no file except below the folder for sinks, reads only the
    /// variables that the settings list, and connects to proxies and databases only where requests for pages are
    /// allowed.
    Delivered(&'a settings::Spiders),
    /// A text that a caller sent to be tried at once, by a process that serves everybody: it also has no variable,
    /// no proxy and no program.
    Tried(&'a settings::Spiders),
}

impl<'a> Origin<'a> {
    /// Returns the settings that confine it; `None` if nothing does.
    pub fn limits(self) -> Option<&'a settings::Spiders> {
        match self {
            Self::Local => None,
            Self::Fetched(limits) | Self::Delivered(limits) | Self::Tried(limits) => Some(limits),
        }
    }

    /// Returns whether it was fetched by Git.
    pub(crate) fn is_fetched(self) -> bool {
        matches!(self, Self::Fetched(_))
    }

    /// Returns whether it is tried for a caller.
    pub(crate) fn is_tried(self) -> bool {
        matches!(self, Self::Tried(_))
    }
}
