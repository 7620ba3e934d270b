//! The web's parts: URLs, hosts, responses, header fields, cookies, the freshness of a response, the kind and charset
//! of a body, clients that read too slowly, and clients that send nothing.

pub mod charset;
pub mod cookies;
pub mod field;
pub mod freshness;
pub mod headers;
pub mod host;
pub mod http_date;
pub mod login_form;
pub mod newcomers;
pub mod paced;
pub mod response;
pub mod sniff;
pub mod url;
