//! The cookies of one session.

use serde::{Deserialize, Serialize};

use super::cookie::{Cookie, SetCookie, is_under, is_within};
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

/// Maximum number of cookies of one site, a registrable domain.
const MAX_OF_SITE: usize = 150;

/// Maximum size of the cookies of one site, in bytes.
const MAX_BYTES_OF_SITE: usize = 64 * 1024;

/// Maximum number of cookies.
const MAX_COOKIES: usize = 1000;

/// Maximum size of all cookies, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Maximum length of the field `Cookie` of a request, in bytes: servers refuse much longer ones.
const MAX_FIELD: usize = 16 * 1024;

/// A cookie that is set anew with what it had counts as changed if its life is longer by this share of what was left.
const EXTENDED: u64 = 8;

/// The cookies of one session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CookieJar(Vec<Cookie>);

impl CookieJar {
    /// Returns the cookies.
    pub fn cookies(&self) -> &[Cookie] {
        &self.0
    }

    /// Takes in a cookie, or removes one. Returns whether that changes anything that matters: a cookie whose expiry
    /// alone is a little later is left as it is.
    pub fn set(&mut self, set: SetCookie, now: UnixMs) -> bool {
        let SetCookie { mut cookie, is_over_tls } = set;
        let shields = |other: &Cookie| {
            let is_near =
                is_within(&cookie.domain, &other.domain) || is_within(&other.domain, &cookie.domain);
            other.secure && other.name == cookie.name && is_near && is_under(&cookie.path, &other.path)
        };
        if !is_over_tls && self.0.iter().any(shields) {
            return false;
        }
        let known = self.0.iter().position(|other| cookie.replaces(other));
        if cookie.is_over(now) {
            return known.map(|at| self.0.remove(at)).is_some();
        }
        let Some(at) = known else {
            let domain = cookie.domain.clone();
            self.0.push(cookie);
            self.make_room(&domain, now);
            return true;
        };
        let before = &mut self.0[at];
        cookie.created = before.created;
        if is_alike(before, &cookie, now) {
            return false;
        }
        let domain = cookie.domain.clone();
        *before = cookie;
        self.make_room(&domain, now);
        true
    }

    /// Returns the value of the field `Cookie` of a request for `url`, if there is any.
    pub fn field(&self, url: &CanonicalUrl, now: UnixMs) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let url = url.to_url();
        let (host, path, is_tls) = (url.host_str()?, url.path(), url.scheme() == "https");
        let is_sent = |cookie: &&Cookie| {
            let is_ours = match cookie.host_only {
                true => cookie.domain == host,
                false => is_within(host, &cookie.domain),
            };
            is_ours && is_under(path, &cookie.path) && (is_tls || !cookie.secure) && !cookie.is_over(now)
        };
        let mut sent: Vec<&Cookie> = self.0.iter().filter(is_sent).collect();
        sent.sort_by(|a, b| b.path.len().cmp(&a.path.len()).then(a.created.cmp(&b.created)));
        let mut field = String::new();
        for Cookie { name, value, .. } in sent {
            if field.len() + name.len() + value.len() + 3 > MAX_FIELD {
                break;
            }
            if !field.is_empty() {
                field.push_str("; ");
            }
            if !name.is_empty() {
                field.push_str(name);
                field.push('=');
            }
            field.push_str(value);
        }
        (!field.is_empty()).then_some(field)
    }

    /// Removes the oldest cookies of the site of `domain`, and then of all, as long as there are too many; first of all
    /// those that have expired.
    fn make_room(&mut self, domain: &str, now: UnixMs) {
        let site = site(domain).to_owned();
        let is_of_site = |cookie: &Cookie| self::site(&cookie.domain) == site;
        let mut is_swept = false;
        loop {
            let (mut of_site, mut all) = (Size::default(), Size::default());
            for cookie in &self.0 {
                all.add(cookie);
                if is_of_site(cookie) {
                    of_site.add(cookie);
                }
            }
            let is_crowded = of_site.exceeds(MAX_OF_SITE, MAX_BYTES_OF_SITE);
            if !is_crowded && !all.exceeds(MAX_COOKIES, MAX_BYTES) {
                return;
            }
            if !std::mem::replace(&mut is_swept, true) {
                self.0.retain(|cookie| !cookie.is_over(now));
                continue;
            }
            let oldest = self.0.iter().position(|cookie| !is_crowded || is_of_site(cookie));
            self.0.remove(oldest.unwrap_or_default());
        }
    }
}

/// The number of cookies, and their size in bytes.
#[derive(Default)]
struct Size {
    count: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, cookie: &Cookie) {
        self.count += 1;
        self.bytes += cookie.bytes();
    }

    fn exceeds(&self, count: usize, bytes: usize) -> bool {
        self.count > count || self.bytes > bytes
    }
}

/// Returns the registrable domain of a host, or the host itself.
fn site(domain: &str) -> &str {
    psl::domain_str(domain).unwrap_or(domain)
}

fn is_alike(before: &Cookie, cookie: &Cookie, now: UnixMs) -> bool {
    let is_extended = match (before.expires, cookie.expires) {
        (Some(before), Some(then)) => {
            let left = before.0.saturating_sub(now.0);
            then < before || then.0 - before.0 > left / EXTENDED
        }
        (before, then) => before != then,
    };
    !is_extended && Cookie { expires: before.expires, ..cookie.clone() } == *before
}
