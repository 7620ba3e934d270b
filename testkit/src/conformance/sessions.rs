//! The promises of [`Sessions`].

use std::sync::Arc;

use futures::future::try_join_all;
use trawl_common::ports::{Error, Result, Sessions, StoredSession};
use trawl_common::session::{BeginLogin, LEASE, LoginResult, SessionId, SessionOwner, SessionState};
use trawl_common::time::UnixMs;
use trawl_common::web::cookies::SetCookie;

use super::unique;

/// Makes a test of each promise of [`Sessions`].
#[macro_export]
macro_rules! sessions_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, sessions:
            a_session_is_read_as_it_was_written
            nobody_overwrites_what_another_has_written
            sessions_are_kept_apart
            of_many_workers_one_logs_in
        }
    };
}

fn id() -> SessionId {
    let owner = SessionOwner::Spider(unique("spider").parse().expect("it is a name"));
    SessionId { owner, name: "1-00ff".into() }
}

fn state(cookies: &[&str]) -> SessionState {
    let now = UnixMs::now();
    let url = "https://a.example/".parse().expect("it is a URL");
    let mut state = SessionState::default();
    for set in cookies.iter().filter_map(|cookie| SetCookie::parse(&url, cookie, now)) {
        state.set_cookie(0, set, now);
    }
    state
}

/// A session is read whole, unless the reader knows it already. There is none at first.
pub async fn a_session_is_read_as_it_was_written(sessions: &Arc<dyn Sessions>) -> Result<()> {
    let (id, mut expected) = (id(), state(&["a=1; Max-Age=60; Secure", "b=\"ü\"; Domain=a.example"]));
    assert_eq!(sessions.read(&id, 0).await?, None);
    let mut revision = 0;
    for _ in 0..3 {
        expected.begin_login(&"w1".parse().expect("a name"), expected.logins, UnixMs::now());
        let written = sessions.write(&id, revision, &expected).await?;
        assert_eq!(written, Some(revision + 1));
        let stored = StoredSession { revision: revision + 1, state: expected.clone() };
        assert_eq!(sessions.read(&id, revision).await?, Some(stored));
        revision += 1;
        assert_eq!(sessions.read(&id, revision).await?, None);
    }
    Ok(())
}

/// A session is replaced only by those who know it as it is.
pub async fn nobody_overwrites_what_another_has_written(sessions: &Arc<dyn Sessions>) -> Result<()> {
    let (id, first, second) = (id(), state(&["a=1"]), state(&["a=2"]));
    assert_eq!(sessions.write(&id, 1, &first).await?, None, "there is none");
    assert_eq!(sessions.write(&id, 0, &first).await?, Some(1));
    assert_eq!(sessions.write(&id, 0, &second).await?, None);
    assert_eq!(sessions.read(&id, 0).await?, Some(StoredSession { revision: 1, state: first }));
    assert_eq!(sessions.write(&id, 1, &second).await?, Some(2));
    Ok(())
}

/// Sessions of other spiders, shared ones, and others of one spider are not mixed up.
pub async fn sessions_are_kept_apart(sessions: &Arc<dyn Sessions>) -> Result<()> {
    let one = id();
    let shared = SessionOwner::Shared(unique("share").into());
    let others = [
        id(),
        SessionId { name: "2-00ff".into(), ..one.clone() },
        SessionId { owner: shared, ..one.clone() },
    ];
    sessions.write(&one, 0, &state(&["a=1"])).await?;
    for other in others {
        assert_eq!(sessions.read(&other, 0).await?, None);
    }
    Ok(())
}

/// However many want to log in at once, one does, and all others learn of it.
pub async fn of_many_workers_one_logs_in(sessions: &Arc<dyn Sessions>) -> Result<()> {
    let (id, now) = (id(), UnixMs::now());
    let tries = (0..16).map(async |number| {
        let worker = format!("w{number}").parse().expect("a name");
        let mut stored = StoredSession::default();
        loop {
            match stored.state.begin_login(&worker, 0, now) {
                BeginLogin::Begun => {}
                BeginLogin::Held(until) => {
                    assert_eq!(until, now.plus(LEASE));
                    return Ok::<_, Error>(false);
                }
                other => panic!("{other:?}"),
            }
            if let Some(revision) = sessions.write(&id, stored.revision, &stored.state).await? {
                stored.state.end_login(&worker, Ok(LoginResult::default()), LEASE, now);
                assert_eq!((stored.state.logins, revision), (1, 1));
                return Ok(true);
            }
            stored = sessions.read(&id, stored.revision).await?.unwrap_or(stored);
        }
    });
    let begun = try_join_all(tries).await?;
    assert_eq!(begun.iter().filter(|begun| **begun).count(), 1);
    Ok(())
}
