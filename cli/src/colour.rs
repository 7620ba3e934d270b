//! Colours on standard error.

use anstream::AutoStream;

/// Whether what is written to standard error is in colours.
pub(crate) fn has_colours() -> bool {
    AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
