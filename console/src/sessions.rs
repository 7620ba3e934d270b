//! The sessions of logged-in visitors. A session is a random name in a cookie; its data is kept in memory,
//! and ends with the process.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use trawl_api::Identity;

/// The name of the cookie.
const NAME: &str = "trawl_session";
/// The lifetime of a session.
const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of sessions of one holder; one more ends the oldest of that holder's.
const MAX_SESSIONS: usize = 20;

/// The sessions that have not ended.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Digested, ConsoleSession>>);

/// The SHA-256 of a session's name: the time that a lookup takes reveals nothing about the names.
type Digested = [u8; 32];

/// A session.
#[derive(Clone)]
pub(crate) struct ConsoleSession {
    pub(crate) identity: Identity,
    /// The token that its forms must contain.
    pub(crate) csrf: String,
    begun: Instant,
}

impl Sessions {
    /// Starts a session and returns its name.
    pub(crate) fn begin(&self, identity: Identity, now: Instant) -> String {
        let name = secret();
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| now.duration_since(session.begun) < LIFETIME);
        let of_holder = || sessions.iter().filter(|(_, session)| session.identity == identity);
        if of_holder().count() >= MAX_SESSIONS {
            let oldest = of_holder().min_by_key(|(_, session)| session.begun).map(|(name, _)| *name);
            oldest.and_then(|oldest| sessions.remove(&oldest));
        }
        sessions.insert(digest(&name), ConsoleSession { identity, csrf: secret(), begun: now });
        name
    }

    /// Returns the session of this name, if it has not ended.
    pub(crate) fn find(&self, name: &str, now: Instant) -> Option<ConsoleSession> {
        let session = self.0.lock().get(&digest(name)).cloned()?;
        (now.duration_since(session.begun) < LIFETIME).then_some(session)
    }

    pub(crate) fn end(&self, name: &str) {
        self.0.lock().remove(&digest(name));
    }
}

fn digest(name: &str) -> Digested {
    Sha256::digest(name).into()
}

/// Returns 256 random bits, as text.
pub(crate) fn secret() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 32]>())
}

/// Returns the session names in a request. There may be several: cookies of other servers on this machine are
/// sent here, too.
pub(crate) fn names(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == NAME).map(|(_, value)| value)
}

/// Returns the cookie that names a session. No script can read it, and browsers do not send it with requests
/// from other sites.
pub(crate) fn cookie(name: &str, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{NAME}={name}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}", LIFETIME.as_secs())
}

/// Returns the cookie that makes the browser forget the session.
pub(crate) fn no_cookie(is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{secure}")
}

#[cfg(test)]
mod tests {
    use trawl_api::Access;
    use trawl_common::settings;

    use super::*;

    fn somebody() -> Identity {
        at([127, 0, 0, 1])
    }

    /// Without tokens each address is its own holder.
    fn at(peer: [u8; 4]) -> Identity {
        let access = Access::new(&settings::Api::default(), "127.0.0.1:1".parse().unwrap()).unwrap();
        let headers = HeaderMap::from_iter([(axum::http::header::HOST, "localhost".parse().unwrap())]);
        access.anyone(&headers, peer.into()).unwrap().unwrap()
    }

    #[test]
    fn a_session_is_found_by_its_name_until_it_ends_or_is_too_old() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, other] = [0, 1].map(|_| sessions.begin(somebody(), now));
        assert_ne!(one, other);
        assert!(sessions.find(&one, now + LIFETIME - Duration::from_secs(1)).is_some());
        assert!(sessions.find(&one, now + LIFETIME).is_none());
        assert!(sessions.find("", now).is_none());
        sessions.end(&one);
        assert!(sessions.find(&one, now).is_none() && sessions.find(&other, now).is_some());
    }

    #[test]
    fn one_session_too_many_ends_the_oldest_of_its_holder_and_of_nobody_else() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let other = sessions.begin(at([127, 0, 0, 2]), now);
        let begun = |second| sessions.begin(somebody(), now + Duration::from_secs(second));
        let all: Vec<_> = (0..=MAX_SESSIONS as u64).map(begun).collect();
        let found = |name: &String| sessions.find(name, now + Duration::from_secs(2000)).is_some();
        assert_eq!((found(&all[0]), found(&all[1]), found(&all[MAX_SESSIONS])), (false, true, true));
        assert!(found(&other), "it is older, but of another holder");
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let headers =
            HeaderMap::from_iter([(COOKIE, "a=1; trawl_session=x;trawl_session=y".parse().unwrap())]);
        assert_eq!(names(&headers).collect::<Vec<_>>(), ["x", "y"]);
    }
}
