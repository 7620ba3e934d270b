//! The texts of records.

use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::{Record, State};

/// A record parsed from its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    state: char,
    since: u64,
    deadline: Option<u64>,
    lane: Lane,
    holder: Option<String>,
    starts: u32,
    attempts: u32,
}

impl Row {
    pub(super) fn read(text: &str, idle: u64) -> Self {
        let mut parts = text.strip_prefix("v3 ").unwrap_or(text).split(' ');
        let head = parts.next().unwrap();
        let (state, head) = head.split_at(1);
        let (since, left) = head.split_at(head.find(['+', '-']).unwrap_or(head.len()));
        let (since, left): (u64, Option<i64>) = (since.parse().unwrap(), left.parse().ok());
        let lane =
            if parts.next().is_some_and(|part| part.starts_with('p')) { Lane::Priority } else { Lane::Bulk };
        let mut parts = parts.skip(1);
        let holder = parts.next().filter(|holder| *holder != "-").map(str::to_owned);
        let mut number = || parts.next().map_or(0, |number| number.parse().unwrap());
        Self {
            state: state.parse().unwrap(),
            since,
            deadline: left.map(|left| since.saturating_add_signed(left) + idle),
            lane,
            holder,
            starts: number(),
            attempts: number(),
        }
    }

    pub(super) fn new(record: &Record) -> Self {
        let (state, since, holder) = match &record.state {
            State::New { since } => ('n', since, None),
            State::Queued { since } => ('q', since, None),
            State::Parked { until, in_pause, .. } => ('p', until, in_pause.then(|| "paused".to_owned())),
            State::Held { by, since, has_started } => {
                (if *has_started { 'f' } else { 'h' }, since, Some(by.to_string()))
            }
        };
        Self {
            state,
            since: since.0,
            deadline: record.deadline.map(|deadline| deadline.0),
            lane: record.lane,
            holder,
            starts: record.starts,
            attempts: record.attempts,
        }
    }
}
