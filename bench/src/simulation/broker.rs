//! The broker: two queues that workers take from, and the ladder.

use std::collections::VecDeque;

use trawl_common::frontier::ladder::RUNGS;

/// A message, by the place of its URL among those that have not ended.
pub(super) type Message = u32;

/// A queue that workers take from, the one to empty first first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueName {
    /// What comes back from the ladder.
    Due,
    /// What was admitted.
    Bulk,
}

/// First-in, first-out queues that deliver to their consumers in round robin, to each up to its prefetch.
pub(super) struct Broker {
    prefetch: u16,
    queues: [Queue; 2],
    /// What is parked, by rung, and until when.
    rungs: [VecDeque<(u64, Message)>; RUNGS.len()],
}

struct Queue {
    messages: VecDeque<Message>,
    /// The workers that may get another message, in round robin.
    open: VecDeque<u32>,
    /// How many each has that it has not acknowledged.
    unacked: Vec<u16>,
}

impl Broker {
    /// With so many workers, which all consume.
    pub(super) fn new(workers: u32, prefetch: u16) -> Self {
        let queue = || Queue {
            messages: VecDeque::new(),
            open: (0..workers).collect(),
            unacked: vec![0; workers as usize],
        };
        Self { prefetch, queues: [queue(), queue()], rungs: Default::default() }
    }

    /// Puts a message into a queue.
    pub(super) fn publish(&mut self, queue: QueueName, message: Message) {
        self.queues[queue as usize].messages.push_back(message);
    }

    /// The next delivery from a queue, if a worker may get one: to whom, and what.
    pub(super) fn deliver(&mut self, queue: QueueName) -> Option<(u32, Message)> {
        let queue = &mut self.queues[queue as usize];
        if queue.open.is_empty() {
            return None;
        }
        let message = queue.messages.pop_front()?;
        let worker = queue.open.pop_front()?;
        let unacked = &mut queue.unacked[worker as usize];
        *unacked += 1;
        if *unacked < self.prefetch {
            queue.open.push_back(worker);
        }
        Some((worker, message))
    }

    /// Takes note that a worker is done with a message.
    pub(super) fn ack(&mut self, queue: QueueName, worker: u32) {
        let queue = &mut self.queues[queue as usize];
        let unacked = &mut queue.unacked[worker as usize];
        if *unacked == self.prefetch {
            queue.open.push_back(worker);
        }
        *unacked -= 1;
    }

    /// Parks a message on a rung at `now`. Returns when that is to be looked at, if nothing was there yet.
    pub(super) fn park(&mut self, rung: usize, message: Message, now: u64) -> Option<u64> {
        let expires = now + RUNGS[rung].as_micros() as u64;
        let parked = &mut self.rungs[rung];
        parked.push_back((expires, message));
        (parked.len() == 1).then_some(expires)
    }

    /// Moves what has expired on a rung to the due queue. Returns how many these are, and when to look again.
    pub(super) fn expire(&mut self, rung: usize, now: u64) -> (u64, Option<u64>) {
        let parked = &mut self.rungs[rung];
        let expired = parked.iter().take_while(|(expires, _)| *expires <= now).count();
        self.queues[QueueName::Due as usize]
            .messages
            .extend(parked.drain(..expired).map(|(_, message)| message));
        (expired as u64, parked.front().map(|(expires, _)| *expires))
    }
}
