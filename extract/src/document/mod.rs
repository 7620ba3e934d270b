//! The forms in which a response is read: text, JSON, the findings of one streaming pass, a tree.

pub(crate) mod base;
pub(crate) mod charset;
pub(crate) mod csv;
pub(crate) mod elements;
pub(crate) mod found;
pub(crate) mod js;
pub(crate) mod json;
pub(crate) mod json_ld;
pub(crate) mod json_repair;
pub(crate) mod markup;
pub(crate) mod microdata;
pub(crate) mod nuxt;
pub(crate) mod page;
pub(crate) mod robots_directives;
pub(crate) mod script;
pub(crate) mod selector;
pub(crate) mod stream;
pub(crate) mod tree;
pub(crate) mod xml;
