//! trawl
fn main() {}
