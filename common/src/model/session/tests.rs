use std::time::Duration;

use super::*;
use crate::names::WorkerId;
use crate::time::UnixMs;
use crate::web::cookies::SetCookie;

const NOW: UnixMs = UnixMs(1_700_000_000_000);
const PAUSE: Duration = Duration::from_secs(10);

fn worker(name: &str) -> WorkerId {
    name.parse().unwrap()
}

fn later(seconds: u64) -> UnixMs {
    NOW.plus(Duration::from_secs(seconds))
}

#[test]
fn one_worker_logs_in_and_the_others_wait_until_it_has_or_its_lease_lapses() {
    let (mut state, one, other) = (SessionState::default(), worker("w1"), worker("w2"));
    assert_eq!(state.begin_login(&one, 0, NOW), BeginLogin::Begun);
    assert_eq!(state.begin_login(&other, 0, later(1)), BeginLogin::Held(NOW.plus(LEASE)));
    assert!(state.renew(&one, later(10)) && !state.renew(&other, later(10)));
    assert_eq!(state.begin_login(&other, 0, NOW.plus(LEASE)), BeginLogin::Held(later(10).plus(LEASE)));
    assert_eq!(state.begin_login(&other, 0, later(10).plus(LEASE)), BeginLogin::Begun);
    let result = || Ok(LoginResult::default());
    assert!(!state.end_login(&one, result(), PAUSE, later(31)), "its lease has lapsed");
    assert!(state.end_login(&other, result(), PAUSE, later(31)));
    assert_eq!((state.logins, state.begin_login(&one, 0, later(32))), (1, BeginLogin::Done));
}

#[test]
fn a_session_that_a_page_has_proven_is_renewed_at_once_and_another_after_longer_and_longer_pauses() {
    let (mut state, one) = (SessionState::default(), worker("w1"));
    let mut now = NOW;
    for logins in 0..3 {
        assert_eq!(state.begin_login(&one, logins, now), BeginLogin::Begun);
        assert!(state.end_login(&one, Ok(LoginResult::default()), PAUSE, now));
        assert!(state.prove(logins + 1) && !state.prove(logins + 1) && !state.prove(logins));
        now = now.plus(Duration::from_millis(1));
    }
    for pause in [10, 20, 0] {
        assert_eq!(state.begin_login(&one, 3, now), BeginLogin::Begun);
        assert!(state.end_login(&one, Err("step 2: http: 500".to_owned()), PAUSE, now));
        if pause == 0 {
            break;
        }
        let next = now.plus(Duration::from_secs(pause));
        assert_eq!(state.begin_login(&one, 3, now), BeginLogin::Later(next));
        now = next;
    }
    assert_eq!(state.begin_login(&one, 3, now), BeginLogin::GivenUp("step 2: http: 500".to_owned()));
    let BeginLogin::Later(again) = state.begin_login(&one, 3, now) else { panic!("it is given up") };
    assert_eq!(state.begin_login(&one, 3, again), BeginLogin::Begun, "as a person has resumed its crawls");
}

#[test]
fn log_ins_that_help_nothing_are_given_up() {
    let (mut state, one, mut now) = (SessionState::default(), worker("w1"), NOW);
    for logins in 0..3 {
        assert_eq!(state.begin_login(&one, logins, now), BeginLogin::Begun);
        assert!(state.end_login(&one, Ok(LoginResult::default()), PAUSE, now));
        now = now.plus(PAUSE * 4);
    }
    let BeginLogin::GivenUp(why) = state.begin_login(&one, 3, now) else { panic!("it is given up") };
    assert!(why.contains("`lapsed`"), "{why}");
}

#[test]
fn a_log_in_that_is_put_off_counts_for_nothing() {
    let (mut state, one, mut now) = (SessionState::default(), worker("w1"), NOW);
    for _ in 0..10 {
        assert_eq!(state.begin_login(&one, 0, now), BeginLogin::Begun);
        now = now.plus(PAUSE);
        assert!(state.put_off_login(&one, now));
    }
}

#[test]
fn cookies_of_an_earlier_session_change_nothing() {
    let cookie = || SetCookie::parse(&"https://a.example/".parse().unwrap(), "s=1", NOW).unwrap();
    let mut state: SessionState = serde_json::from_str(r#"{"logins": 2}"#).unwrap();
    assert!(!state.set_cookie(1, cookie(), NOW) && state.cookies.cookies().is_empty());
    assert!(state.set_cookie(2, cookie(), NOW) && !state.set_cookie(2, cookie(), NOW));
}

#[test]
fn a_session_needs_a_log_in_at_first_and_when_its_token_expires() {
    let mut state = SessionState::default();
    assert!(state.lacks_login(NOW));
    (state.logins, state.expires) = (1, Some(later(60)));
    assert!(!state.lacks_login(later(59)) && state.lacks_login(later(60)));
}

#[test]
fn a_state_is_read_as_it_was_stored_also_by_and_from_other_versions() {
    let mut state = SessionState::default();
    state.begin_login(&worker("w1"), 0, NOW);
    let stored = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<SessionState>(&stored).unwrap(), state);
    let known: SessionState = serde_json::from_str(r#"{"logins": 3, "later": true}"#).unwrap();
    assert_eq!((known.logins, known.is_proven(), known.lacks_login(NOW)), (3, true, false));
}
