//! From what was found in a response to values of a field's kind.

pub(crate) mod budget;
pub(crate) mod convert;
pub(crate) mod date;
pub(crate) mod main_text;
pub(crate) mod number;
pub(crate) mod table;
pub(crate) mod truth;
