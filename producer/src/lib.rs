//! trawl

pub mod sitemap;
