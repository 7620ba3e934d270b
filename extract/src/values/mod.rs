//! Converts found values to the types of fields.

pub(crate) mod budget;
pub(crate) mod convert;
pub(crate) mod date;
pub(crate) mod main_text;
pub(crate) mod markdown;
pub(crate) mod number;
pub(crate) mod simhash;
pub(crate) mod table;
pub(crate) mod transform;
pub(crate) mod truth;
