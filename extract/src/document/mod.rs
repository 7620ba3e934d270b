//! The forms in which a response is read: text, JSON, the findings of one streaming pass, a tree.

pub(crate) mod base;
pub(crate) mod charset;
pub(crate) mod found;
pub(crate) mod json;
pub(crate) mod json_ld;
pub(crate) mod json_repair;
pub(crate) mod markup;
pub(crate) mod microdata;
pub(crate) mod stream;
pub(crate) mod tree;
