//! Where items go.

mod jsonl;
mod none;

pub use jsonl::JsonLines;
pub use none::NoItems;
