//! The web's parts: URLs, hosts, header fields, how long a response is fresh, the kind and charset of a body, clients that read too
//! slowly, and clients that say nothing.

pub mod charset;
pub mod field;
pub mod freshness;
pub mod headers;
pub mod host;
pub mod http_date;
pub mod newcomers;
pub mod paced;
pub mod sniff;
pub mod url;
