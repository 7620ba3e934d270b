//! trawl
