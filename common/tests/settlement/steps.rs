//! Every step that may come next, by `trawl_common::frontier` where the store decides.

use std::fmt;

use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{ClaimReply, Finished, StartReply};

use crate::guards::Guard;
use crate::world::{
    Carrier, Doing, Entry, People, Place, Source, Stored, Tick, WORKERS, Waiting, World, at, tick,
};

/// Number of failures after which it is not tried again.
const TRIES: u8 = 1;

/// The wait before it is tried again.
const BACKOFF: Tick = 2;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tick,
    Publish(Who),
    Confirm(Who),
    AdmitAgain,
    Sweep,
    SendProbe(Source),
    TakeProbe(Source),
    Recover,
    ComeDue(usize),
    Receive(usize, Source),
    /// The next thing that the worker does.
    Work(usize),
    /// Likewise, but the answer is lost.
    WorkUnanswered(usize),
    Extend(usize),
    Fail(usize),
    GiveBack(usize),
    Die(Who),
    LoseConnection(usize),
    DeliverTwice,
    EmptyStore,
    EmptyBroker,
    RollBack,
    Pause,
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Producer,
    Sweeper,
    Worker(usize),
}

/// A promise that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Neither the store nor the broker nor a process knows of it, and it has not ended.
    Lost,
    /// The broker has no message of it, although nothing was lost there, and nobody is about to send one.
    OnlyInTheStore,
    /// It has ended a second time, although the store has forgotten nothing.
    EndedTwice,
    /// A worker has ended it that another one had taken it from.
    EndedByAnother,
    /// Two workers that hear of their leases fetch it at a time.
    FetchedByTwo,
    /// It does not end, although nothing goes wrong any more.
    NeverEnds,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

/// The world as it is, with what decides in it.
pub(crate) struct Model {
    pub(crate) people: People,
    /// The guard that is taken out.
    pub(crate) without: Option<Guard>,
    /// The last instant that is looked at.
    pub(crate) horizon: Tick,
}

impl Model {
    /// Passes on every step that may come next, and the world after it.
    pub(crate) fn steps(&self, world: &World, mut next: impl FnMut(Step, World)) {
        if world.now < self.horizon {
            next(Step::Tick, World { now: world.now + 1, ..*world });
        }
        self.carry(world, &mut next);
        self.queues(world, &mut next);
        for worker in 0..WORKERS {
            self.worker(world, worker, &mut next);
        }
        if world.is_paused {
            next(Step::Resume, World { is_paused: false, ..*world });
        }
        if world.faults.left > 0 {
            self.faults(world, &mut next);
        }
    }

    /// Returns the promise that a world breaks.
    pub(crate) fn broken(&self, world: &World) -> Option<Broken> {
        let is_known = world.ends > 0 || world.has_message() || world.is_carried();
        match world.stored {
            Stored::Unseen if !is_known && !world.is_in_hand() => Some(Broken::Lost),
            Stored::Pending { .. } if !is_known && !world.has_lost_a_message && !world.has_forgotten => {
                Some(Broken::OnlyInTheStore)
            }
            _ => None,
        }
    }

    /// The processes that carry it from the store to the broker.
    fn carry(&self, world: &World, next: &mut impl FnMut(Step, World)) {
        for (who, carrier) in [(Who::Producer, world.producer), (Who::Sweeper, world.sweeper)] {
            let mut after = *world;
            match carrier {
                Carrier::Idle => continue,
                Carrier::Publishes => *after.carrier(who) = Carrier::Confirms,
                Carrier::Confirms => *after.carrier(who) = Carrier::Idle,
            }
            let comes_first = self.without != Some(Guard::PublishBeforeConfirm);
            if (carrier == Carrier::Publishes) != comes_first {
                after.change(&self.people, |state, _| state.confirm(None));
                next(Step::Confirm(who), after);
            } else if after.lane.put(Entry::Url(None)) {
                next(Step::Publish(who), after);
            }
        }
        // It sees that the store was restarted.
        if world.producer != Carrier::Idle && world.stored == Stored::Unseen {
            let mut after = *world;
            after.change(&self.people, |state, context| state.admit(Lane::Bulk, None, true, context));
            after.producer = Carrier::Publishes;
            next(Step::AdmitAgain, after);
        }
        if world.sweeper == Carrier::Idle && self.without != Some(Guard::Sweep) {
            let mut after = *world;
            let (lane, due) = (world.lane.watermark(), world.due.watermark());
            let watermark = |queue| if queue == SourceQueue::Due { due } else { lane };
            if after.change(&self.people, |state, context| state.sweep(watermark, context)) {
                after.sweeper = Carrier::Publishes;
                next(Step::Sweep, after);
            }
        }
    }

    /// The deliveries of the broker.
    fn queues(&self, world: &World, next: &mut impl FnMut(Step, World)) {
        for source in [Source::Lane, Source::Due] {
            let mut after = *world;
            let queue = after.queue(source);
            match queue.front() {
                Some(Entry::Probe(sent)) => {
                    queue.take();
                    queue.note_probe(sent);
                    next(Step::TakeProbe(source), after);
                }
                Some(Entry::Url(wake)) => {
                    queue.take();
                    for (number, worker) in world.workers.iter().enumerate() {
                        if worker.doing == Doing::Nothing && worker.unacked.is_none() {
                            let mut received = after;
                            let worker = &mut received.workers[number];
                            (worker.doing, worker.wake, worker.unacked) = (Doing::Claim, wake, Some(source));
                            next(Step::Receive(number, source), received);
                        }
                    }
                }
                None => {}
            }
            let (mut after, now) = (*world, world.now);
            let queue = after.queue(source);
            if !queue.has_probe() && queue.probed < now && queue.put(Entry::Probe(now)) {
                queue.probed = now;
                next(Step::SendProbe(source), after);
            }
        }
        for (number, waiting) in world.ladder.iter().enumerate() {
            // It may come a moment before its time.
            let Some(Waiting { due, wake }) = *waiting else { continue };
            let mut after = *world;
            if due <= world.now + 1 && after.due.put(Entry::Url(wake)) {
                after.ladder[number..].rotate_left(1);
                *after.ladder.last_mut().expect("it has room") = None;
                next(Step::ComeDue(number), after);
            }
        }
        if world.is_recovering && world.lane.delivered > 0 && world.due.delivered > 0 {
            next(Step::Recover, World { is_recovering: false, ..*world });
        }
    }

    fn worker(&self, world: &World, number: usize, next: &mut impl FnMut(Step, World)) {
        let is_call = matches!(
            world.workers[number].doing,
            Doing::Claim
                | Doing::Start
                | Doing::Check
                | Doing::Finish
                | Doing::Park(_)
                | Doing::Confirm(_)
                | Doing::Release
        );
        if let Some(after) = self.work(world, number) {
            next(Step::Work(number), after);
            if is_call && world.faults.left > 0 {
                let mut unanswered = after;
                unanswered.workers[number] = world.workers[number];
                unanswered.faults.left -= 1;
                next(Step::WorkUnanswered(number), unanswered);
            }
        }
        let worker = world.workers[number];
        if matches!(worker.doing, Doing::Start | Doing::Fetch) && worker.heard < world.now {
            let mut after = *world;
            self.extend(&mut after, number, worker.doing);
            next(Step::Extend(number), after);
        }
        if worker.doing == Doing::Fetch {
            let mut after = *world;
            after.workers[number].doing = Doing::Release;
            next(Step::GiveBack(number), after);
            if matches!(world.stored, Stored::Pending { attempts, .. } if attempts < TRIES) {
                after.workers[number].doing = Doing::Park(world.now + BACKOFF);
                next(Step::Fail(number), after);
            }
        }
    }

    /// Extends the lease of a worker, which goes on as said if it holds the URL.
    fn extend(&self, world: &mut World, number: usize, then: Doing) {
        let worker = world.workers[number];
        let (id, message) = (self.people.id(worker.id), self.people.message(worker.wake));
        let is_held = world.change(&self.people, |state, context| state.extend(id, message, context));
        let worker = &mut world.workers[number];
        match is_held {
            true => (worker.doing, worker.heard) = (then, world.now),
            false => worker.doing = Doing::Resend,
        }
    }

    /// Does what a worker does next. Returns `None` if it has to wait.
    fn work(&self, world: &World, number: usize) -> Option<World> {
        let mut after = *world;
        let worker = world.workers[number];
        let (people, id, wake) = (&self.people, self.people.id(worker.id), worker.wake);
        let doing = match worker.doing {
            Doing::Nothing => return None,
            Doing::Claim => {
                if self.without == Some(Guard::Lease) {
                    after.take_from_holder();
                }
                match after.change(people, |state, context| state.claim(id, people.message(wake), context)) {
                    ClaimReply::Take { .. } => {
                        after.workers[number].heard = world.now;
                        Doing::Start
                    }
                    ClaimReply::Wait { .. } if self.without == Some(Guard::Delay) => Doing::Ack,
                    ClaimReply::Wait { until } => Doing::Delay { until: tick(until), wake, confirms: false },
                    ClaimReply::SendAgain => Doing::Resend,
                    ClaimReply::Drop => Doing::Ack,
                    reply => unreachable!("{reply:?}"),
                }
            }
            Doing::Start => match after.change(people, |state, context| state.start(id, context)) {
                StartReply::Go => Doing::Fetch,
                StartReply::Poison => Doing::Check,
                _ => Doing::Resend,
            },
            Doing::Fetch => Doing::Check,
            Doing::Check => {
                self.extend(&mut after, number, Doing::Finish);
                return Some(after);
            }
            Doing::Finish => {
                if self.without == Some(Guard::Holder) {
                    after.give_to(worker.id);
                }
                match after.change(people, |state, context| state.finish(id, Terminal::Done, None, context)) {
                    Finished::Now(_) => {
                        after.ends = (after.ends + 1).min(2);
                        Doing::Ack
                    }
                    Finished::Before => Doing::Ack,
                    Finished::NotHeld => Doing::Resend,
                }
            }
            Doing::Park(until) => {
                match after.change(people, |state, context| state.park(id, at(until), true, context)) {
                    true => Doing::Delay { until, wake: Some(until), confirms: true },
                    false => Doing::Resend,
                }
            }
            Doing::Delay { until, wake, confirms } => {
                if !after.delay(Waiting { due: until, wake }) {
                    return None;
                }
                if confirms { Doing::Confirm(until) } else { Doing::Ack }
            }
            Doing::Confirm(until) => {
                after.change(people, |state, _| state.confirm(Some(at(until))));
                Doing::Ack
            }
            Doing::Release => {
                after.change(people, |state, context| state.release(id, context));
                Doing::Resend
            }
            Doing::Resend if self.without == Some(Guard::ResendBeforeAck) && worker.unacked.is_some() => {
                after.workers[number].unacked = None;
                Doing::Resend
            }
            Doing::Resend => {
                if !after.lane.put(Entry::Url(None)) {
                    return None;
                }
                Doing::Ack
            }
            Doing::Ack => {
                let worker = &mut after.workers[number];
                (worker.unacked, worker.wake, worker.heard) = (None, None, 0);
                Doing::Nothing
            }
        };
        after.workers[number].doing = doing;
        Some(after)
    }

    /// The faults that may come.
    fn faults(&self, world: &World, next: &mut impl FnMut(Step, World)) {
        let mut fault = |step, by: &dyn Fn(&mut World) -> bool| {
            let mut after = *world;
            after.faults.left -= 1;
            // The last that knows of it may not go, too: then both servers, or one and whoever carries it, fail at once.
            if by(&mut after) && self.broken(&after) != Some(Broken::Lost) {
                next(step, after);
            }
        };
        for number in 0..WORKERS {
            let worker = world.workers[number];
            if worker.doing == Doing::Nothing {
                continue;
            }
            fault(Step::Die(Who::Worker(number)), &|after| {
                let is_back = after.redeliver(number);
                after.workers[number] = worker.next();
                is_back
            });
            if worker.unacked.is_some() {
                fault(Step::LoseConnection(number), &|after| after.redeliver(number));
            }
        }
        for who in [Who::Producer, Who::Sweeper] {
            fault(Step::Die(who), &|after| {
                after.has_lost_a_message = true;
                std::mem::replace(after.carrier(who), Carrier::Idle) != Carrier::Idle
            });
        }
        if let Some(Entry::Url(wake)) = world.lane.front() {
            fault(Step::DeliverTwice, &|after| after.lane.put(Entry::Url(wake)));
        }
        let faults = world.faults;
        if !faults.is_store_emptied {
            fault(Step::EmptyStore, &|after| {
                (after.stored, after.on_disk) = (Stored::Unseen, Stored::Unseen);
                (after.is_recovering, after.has_forgotten, after.faults.is_store_emptied) =
                    (true, true, true);
                after.lane.forget();
                after.due.forget();
                true
            });
        }
        if !faults.is_broker_emptied {
            fault(Step::EmptyBroker, &|after| {
                after.lane.empty();
                after.due.empty();
                after.ladder = Default::default();
                after.workers.iter_mut().for_each(|worker| worker.unacked = None);
                (after.has_lost_a_message, after.faults.is_broker_emptied) = (true, true);
                true
            });
        }
        if !faults.is_rolled_back && world.on_disk != world.stored {
            fault(Step::RollBack, &|after| {
                after.stored = after.on_disk;
                (after.has_forgotten, after.faults.is_rolled_back) = (true, true);
                true
            });
        }
        if !faults.was_paused {
            fault(Step::Pause, &|after| {
                (after.is_paused, after.faults.was_paused) = (true, true);
                true
            });
        }
    }

    /// Whether a step breaks a promise that no world shows.
    pub(crate) fn breaks(&self, before: &World, step: Step, after: &World) -> Option<Broken> {
        let (Step::Work(number) | Step::WorkUnanswered(number)) = step else { return None };
        let (worker, other) = (before.workers[number], before.workers[1 - number]);
        let began = worker.doing == Doing::Start && after.workers[number].doing == Doing::Fetch;
        let is_fetching = other.doing == Doing::Fetch && !before.has_lapsed(other.heard);
        let is_others = |place| matches!(place, Place::Held { by, .. } if by != worker.id);
        match before.stored {
            _ if began && is_fetching && !before.has_forgotten => Some(Broken::FetchedByTwo),
            _ if after.ends > 1 && !after.has_forgotten => Some(Broken::EndedTwice),
            Stored::Pending { place, .. } if after.ends > before.ends && is_others(place) => {
                Some(Broken::EndedByAnother)
            }
            _ => None,
        }
    }

    /// Returns what comes next when nothing goes wrong any more, and everybody goes on; `None` when it has ended.
    pub(crate) fn goes_on(&self, world: &World) -> Option<World> {
        if world.ends > 0 {
            return None;
        }
        let mut best: Option<(u8, World)> = None;
        self.steps(world, |step, after| {
            if let Some(rank) = rank(world, step)
                && best.is_none_or(|(known, _)| rank < known)
            {
                best = Some((rank, after));
            }
        });
        // Time goes on beyond what is looked at.
        let later = || World { now: world.now + 1, ..*world };
        Some(best.map_or_else(later, |(_, after)| after))
    }
}

/// Returns when a step is taken if nothing goes wrong; `None` for never.
fn rank(world: &World, step: Step) -> Option<u8> {
    Some(match step {
        Step::Work(_) => 0,
        Step::Publish(_) | Step::Confirm(_) | Step::AdmitAgain => 1,
        Step::Resume => 2,
        Step::TakeProbe(_) | Step::Recover => 3,
        Step::ComeDue(number) if world.ladder[number].is_some_and(|waiting| waiting.due <= world.now) => 4,
        Step::Receive(..) => 5,
        Step::Sweep => 6,
        Step::SendProbe(_) => 7,
        _ => return None,
    })
}

impl World {
    fn carrier(&mut self, who: Who) -> &mut Carrier {
        match who {
            Who::Producer => &mut self.producer,
            _ => &mut self.sweeper,
        }
    }

    /// Takes it from whoever holds it, as if leases did not matter.
    fn take_from_holder(&mut self) {
        if let Stored::Pending { place: Place::Held { since, .. }, .. } = &mut self.stored {
            *since = 0;
        }
    }

    /// Has a worker hold it that does not.
    fn give_to(&mut self, worker: u8) {
        if let Stored::Pending { place, .. } = &mut self.stored {
            *place = Place::Held { by: worker, since: self.now, has_started: true };
        }
    }
}
