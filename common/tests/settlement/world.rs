//! One URL between a store that knows its record and a broker that carries its messages, with everybody who handles it.

use std::array;
use std::time::Duration;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Context, Record, State, UrlState, Watermark};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::time::UnixMs;

/// An instant in steps of [`TICK`].
pub(crate) type Tick = u8;

/// Longer than the time by which a parked URL may be taken early.
const TICK: Duration = Duration::from_secs(10);

/// The first instant that anything happens at. Zero stands for never.
pub(crate) const BEGINNING: Tick = 1;

/// `recovery.lost_after`. A lease lasts a quarter of it.
const LOST_AFTER: u32 = 4;

/// The delay of a message in a pause.
const PAUSE_WAIT: u32 = 3;

/// Number of workers.
pub(crate) const WORKERS: usize = 2;

/// Maximum number of entries of a queue, and of messages on the ladder.
const ROOM: usize = 3;

/// Everything that there is of one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: Tick,
    pub(crate) stored: Stored,
    /// The record on the disk of the store, where its last change is not yet.
    pub(crate) on_disk: Stored,
    pub(crate) is_paused: bool,
    pub(crate) is_recovering: bool,
    /// The process that publishes its first message.
    pub(crate) producer: Carrier,
    pub(crate) sweeper: Carrier,
    pub(crate) lane: Queue,
    pub(crate) due: Queue,
    pub(crate) ladder: [Option<Waiting>; ROOM],
    pub(crate) workers: [Worker; WORKERS],
    pub(crate) faults: Faults,
    /// How often it has ended, whatever the store knows of it.
    pub(crate) ends: u8,
    /// Whether the store has forgotten anything.
    pub(crate) has_forgotten: bool,
    /// Whether the broker was emptied, or a process died between the two.
    pub(crate) has_lost_a_message: bool,
}

/// The number of faults that may still come, and those that have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// All together.
    pub(crate) left: u8,
    pub(crate) is_store_emptied: bool,
    pub(crate) is_broker_emptied: bool,
    pub(crate) is_rolled_back: bool,
    pub(crate) was_paused: bool,
}

/// Its record in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    Unseen,
    Pending { place: Place, attempts: u8, starts: u8, lapsed: u8, has_begun: bool },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    New { since: Tick },
    Queued { since: Tick },
    Parked { until: Tick, unconfirmed: Option<Tick>, in_pause: bool },
    Held { by: u8, since: Tick, has_started: bool },
}

/// A process that carries its message from the store to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Carrier {
    Idle,
    Publishes,
    Confirms,
}

/// A queue of the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    entries: [Option<Entry>; ROOM],
    /// When the last probe was sent.
    pub(crate) probed: Tick,
    pub(crate) delivered: Tick,
    pub(crate) lost_before: Tick,
    /// Whether a probe has gone with the rest of the queue.
    misses_a_probe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    /// A message of the URL, with the instant that it waits for.
    Url(Option<Tick>),
    Probe(Tick),
}

/// A message on the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    pub(crate) due: Tick,
    pub(crate) wake: Option<Tick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Lane,
    Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    /// A process that takes the place of a dead one has another id.
    pub(crate) id: u8,
    pub(crate) doing: Doing,
    /// The instant that the message it has received waits for.
    pub(crate) wake: Option<Tick>,
    /// Where that message comes from, until it is acknowledged or its connection is lost.
    pub(crate) unacked: Option<Source>,
    /// When it has last heard that it holds the URL.
    pub(crate) heard: Tick,
}

/// The next thing that a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Nothing,
    Claim,
    Start,
    Fetch,
    /// It has fetched it, and extends its lease before it stores anything.
    Check,
    Finish,
    /// It failed, and is tried again at an instant.
    Park(Tick),
    /// Publishes a message for later; then confirms what it has parked.
    Delay {
        until: Tick,
        wake: Option<Tick>,
        confirms: bool,
    },
    Confirm(Tick),
    Release,
    Resend,
    Ack,
}

impl World {
    /// A producer has admitted it just now.
    pub(crate) fn new(faults: Faults) -> Self {
        let place = Place::New { since: BEGINNING };
        let stored = Stored::Pending { place, attempts: 0, starts: 0, lapsed: 0, has_begun: false };
        let (lane, due) = Default::default();
        Self {
            now: BEGINNING,
            stored,
            on_disk: stored,
            is_paused: false,
            is_recovering: false,
            producer: Carrier::Publishes,
            sweeper: Carrier::Idle,
            lane,
            due,
            ladder: [None; ROOM],
            workers: array::from_fn(|number| Worker::new(number as u8)),
            faults,
            ends: 0,
            has_forgotten: false,
            has_lost_a_message: false,
        }
    }

    /// Whether the broker has a message of it, acknowledged by nobody.
    pub(crate) fn has_message(&self) -> bool {
        self.lane.has_url()
            || self.due.has_url()
            || self.ladder.iter().any(Option::is_some)
            || self.workers.iter().any(|worker| worker.unacked.is_some())
    }

    /// Whether a process carries it to the broker.
    pub(crate) fn is_carried(&self) -> bool {
        self.producer == Carrier::Publishes || self.sweeper == Carrier::Publishes
    }

    /// Whether a living worker knows of it, and has something to do about it.
    pub(crate) fn is_in_hand(&self) -> bool {
        let is_over = |doing| matches!(doing, Doing::Nothing | Doing::Confirm(_) | Doing::Ack);
        self.workers.iter().any(|worker| !is_over(worker.doing))
    }

    pub(crate) fn queue(&mut self, source: Source) -> &mut Queue {
        match source {
            Source::Lane => &mut self.lane,
            Source::Due => &mut self.due,
        }
    }

    /// Puts a message on the ladder, unless that is full.
    pub(crate) fn delay(&mut self, waiting: Waiting) -> bool {
        let place = self.ladder.iter().position(Option::is_none);
        if let Some(place) = place {
            self.ladder[place] = Some(waiting);
            self.ladder.sort_by_key(|waiting| waiting.map_or((Tick::MAX, None), |one| (one.due, one.wake)));
        }
        place.is_some()
    }

    /// Takes the message back that a worker has not acknowledged: it is delivered again, before all others.
    pub(crate) fn redeliver(&mut self, worker: usize) -> bool {
        let Worker { unacked: Some(source), wake, .. } = self.workers[worker] else { return true };
        self.workers[worker].unacked = None;
        self.queue(source).put_first(wake)
    }

    /// Changes the record by a transition.
    pub(crate) fn change<T>(&mut self, people: &People, by: impl FnOnce(&mut UrlState, &Context) -> T) -> T {
        let mut state = self.stored.to_state(people);
        let reply = by(&mut state, &self.context());
        let stored = Stored::of(&state, people);
        if stored != self.stored {
            self.on_disk = self.stored;
            self.stored = stored;
        }
        reply
    }

    fn context(&self) -> Context {
        Context {
            now: at(self.now),
            lost_after: TICK * LOST_AFTER,
            status: if self.is_paused { CrawlState::Paused } else { CrawlState::Running },
            pages_left: None,
            is_recovering: self.is_recovering,
            pause_wait: TICK * PAUSE_WAIT,
        }
    }

    /// Whether the lease of a worker that heard of it then has lapsed.
    pub(crate) fn has_lapsed(&self, heard: Tick) -> bool {
        at(heard).plus(self.context().possession()) < at(self.now)
    }
}

impl Faults {
    /// Returns this many deaths, lost connections and lost answers.
    pub(crate) fn few(left: u8) -> Self {
        Self { left, is_store_emptied: true, is_broker_emptied: true, is_rolled_back: true, was_paused: true }
    }
}

impl Queue {
    pub(crate) fn front(&self) -> Option<Entry> {
        self.entries[0]
    }

    pub(crate) fn take(&mut self) -> Option<Entry> {
        let first = self.entries[0].take();
        self.entries.rotate_left(1);
        first
    }

    /// Adds an entry, unless it is full.
    pub(crate) fn put(&mut self, entry: Entry) -> bool {
        let place = self.entries.iter().position(Option::is_none);
        if let Some(place) = place {
            self.entries[place] = Some(entry);
        }
        place.is_some()
    }

    fn put_first(&mut self, wake: Option<Tick>) -> bool {
        if self.entries[ROOM - 1].is_some() {
            return false;
        }
        self.entries.rotate_right(1);
        self.entries[0] = Some(Entry::Url(wake));
        true
    }

    fn has_url(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Some(Entry::Url(_))))
    }

    pub(crate) fn has_probe(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Some(Entry::Probe(_))))
    }

    /// Loses everything in it.
    pub(crate) fn empty(&mut self) {
        self.misses_a_probe |= self.has_probe();
        self.entries = [None; ROOM];
    }

    /// Forgets what its probes have shown.
    pub(crate) fn forget(&mut self) {
        (self.delivered, self.lost_before) = (0, 0);
    }

    /// A probe that was sent then is back.
    pub(crate) fn note_probe(&mut self, sent: Tick) {
        self.delivered = sent;
        if std::mem::take(&mut self.misses_a_probe) {
            self.lost_before = sent;
        }
    }

    pub(crate) fn watermark(&self) -> Watermark {
        let at = |tick| if tick == 0 { UnixMs::default() } else { at(tick) };
        Watermark { delivered: at(self.delivered), lost_before: at(self.lost_before) }
    }
}

impl Worker {
    fn new(id: u8) -> Self {
        Self { id, doing: Doing::Nothing, wake: None, unacked: None, heard: 0 }
    }

    /// Returns the process that takes its place.
    pub(crate) fn next(&self) -> Self {
        Self::new(self.id + WORKERS as u8)
    }
}

/// The names and messages of all workers, made once.
pub(crate) struct People {
    ids: Vec<WorkerId>,
    messages: Vec<Message>,
}

impl People {
    pub(crate) fn new() -> Self {
        const NAME: &str = "it is a name";
        let url = "https://site.example/".parse().expect("it is a URL");
        let crawl = CrawlRef { id: "c1".parse().expect(NAME), spider: "shop".parse().expect(NAME) };
        let message = Message::seed(url, crawl, Lane::Bulk);
        let waiting = |tick| Message { wake: (tick > 0).then(|| at(tick)), ..message.clone() };
        Self {
            ids: (0..32).map(|number| format!("w{number}").parse().expect(NAME)).collect(),
            messages: (0..=Tick::MAX).map(waiting).collect(),
        }
    }

    pub(crate) fn id(&self, number: u8) -> &WorkerId {
        &self.ids[usize::from(number)]
    }

    /// Returns its message that waits for an instant.
    pub(crate) fn message(&self, wake: Option<Tick>) -> &Message {
        &self.messages[usize::from(wake.unwrap_or_default())]
    }

    fn number(&self, id: &WorkerId) -> u8 {
        self.ids.iter().position(|known| known == id).expect("all are known") as u8
    }
}

pub(crate) fn at(tick: Tick) -> UnixMs {
    UnixMs(1_800_000_000_000).plus(TICK * u32::from(tick))
}

/// Returns the first tick that is not before an instant.
pub(crate) fn tick(at: UnixMs) -> Tick {
    let since = at.since(self::at(0));
    since.as_millis().div_ceil(TICK.as_millis()) as Tick
}

impl Stored {
    fn to_state(self, people: &People) -> UrlState {
        let Self::Pending { place, attempts, starts, lapsed, has_begun } = self else {
            return if self == Self::Ended { UrlState::Ended } else { UrlState::Unseen };
        };
        let state = match place {
            Place::New { since } => State::New { since: at(since) },
            Place::Queued { since } => State::Queued { since: at(since) },
            Place::Parked { until, unconfirmed, in_pause } => {
                State::Parked { until: at(until), unconfirmed: unconfirmed.map(at), in_pause }
            }
            Place::Held { by, since, has_started } => {
                State::Held { by: people.id(by).clone(), since: at(since), has_started }
            }
        };
        let lapsed =
            (0..8).filter(|number| lapsed & 1 << number != 0).map(|number| people.id(number).clone());
        let record = Record::new(state, Lane::Bulk, None);
        let (attempts, starts) = (attempts.into(), starts.into());
        UrlState::Pending(Record { attempts, starts, lapsed: lapsed.collect(), has_begun, ..record })
    }

    fn of(state: &UrlState, people: &People) -> Self {
        let record = match state {
            UrlState::Unseen => return Self::Unseen,
            UrlState::Ended => return Self::Ended,
            UrlState::Pending(record) => record,
        };
        let place = match &record.state {
            State::New { since } => Place::New { since: tick(*since) },
            State::Queued { since } => Place::Queued { since: tick(*since) },
            State::Parked { until, unconfirmed, in_pause } => {
                Place::Parked { until: tick(*until), unconfirmed: unconfirmed.map(tick), in_pause: *in_pause }
            }
            State::Held { by, since, has_started } => {
                Place::Held { by: people.number(by), since: tick(*since), has_started: *has_started }
            }
        };
        let lapsed = record.lapsed.iter().fold(0, |all, id| all | 1 << people.number(id));
        let (attempts, starts) = (record.attempts as u8, record.starts as u8);
        Self::Pending { place, attempts, starts, lapsed, has_begun: record.has_begun }
    }
}
