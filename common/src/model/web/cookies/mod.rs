//! Cookies as browsers keep them: RFC 6265bis with the Public Suffix List, and limits that no site can exceed.
//!
//! `SameSite` and `HttpOnly` have no meaning here: a crawler runs no scripts, and requests pages as a person does who
//! types their URLs.

mod cookie;
mod date;
mod jar;
#[cfg(test)]
mod tests;

pub use self::cookie::{Cookie, SetCookie};
pub use self::jar::CookieJar;
