//! Colours on standard error.

use anstream::AutoStream;

/// Whether to write to standard error in colours.
pub(crate) fn has_colours() -> bool {
    AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
