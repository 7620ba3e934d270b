//! Passes entries to the reader of a source.

use std::ops::ControlFlow;

use super::error::Fault;
use super::found::Found;
use super::limits::Limits;
use super::summary::Summary;

/// The caller's `emit`, with counts and limits.
pub(super) struct Emitter<'a> {
    pub(super) emit: &'a mut dyn FnMut(Found) -> ControlFlow<()>,
    pub(super) limits: &'a Limits,
    pub(super) summary: Summary,
}

impl Emitter<'_> {
    pub(super) fn emit(&mut self, found: Found) -> Result<ControlFlow<()>, Fault> {
        if self.summary.entries() >= self.limits.max_entries {
            return Err(Fault::TooManyEntries(self.limits.max_entries));
        }
        match &found {
            Found::Url(_) => self.summary.urls += 1,
            Found::Sitemap(_) => self.summary.sitemaps += 1,
            Found::Broken(_) => self.summary.broken += 1,
        }
        Ok((self.emit)(found))
    }
}
