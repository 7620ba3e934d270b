//! What the web is made of: URLs, hosts, header fields, how long a response is fresh, what a body is, who reads too slowly, and who
//! says nothing.

pub mod field;
pub mod freshness;
pub mod headers;
pub mod host;
pub mod newcomers;
pub mod paced;
pub mod sniff;
pub mod url;
