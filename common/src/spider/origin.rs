//! Where the text of a spider's file comes from.

use crate::settings;

/// Where the text of a spider's file comes from, which decides what it may have of the machine that works by it.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A file of this machine: whoever wrote it has the machine.
    Local,
    /// A crawl or a caller brought it. It names no file but below the folder for sinks, reads no variable but those that the settings
    /// list, and the proxies and databases that it names are where pages may be.
    Delivered(&'a settings::Spiders),
    /// A caller sent it to be tried at once, by a process that works for everybody: it has no variable, no proxy and no program either.
    Tried(&'a settings::Spiders),
}

impl<'a> Origin<'a> {
    /// The settings that confine it; `None` if nothing does.
    pub fn limits(self) -> Option<&'a settings::Spiders> {
        match self {
            Self::Local => None,
            Self::Delivered(limits) | Self::Tried(limits) => Some(limits),
        }
    }

    /// Whether it is tried for a caller.
    pub fn is_tried(self) -> bool {
        matches!(self, Self::Tried(_))
    }
}
