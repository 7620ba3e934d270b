//! The broker: two queues that workers consume, and the ladder.

use std::collections::VecDeque;

use trawl_common::frontier::ladder::RUNGS;

/// A message, as the index of its URL among those that have not ended.
pub(super) type Message = u32;

/// A queue that workers consume. The first is emptied first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueName {
    /// Messages that come back from the ladder.
    Due,
    /// Messages of admitted URLs.
    Bulk,
}

/// First-in, first-out queues that deliver to their consumers in round robin, to each up to its prefetch.
pub(super) struct Broker {
    prefetch: u16,
    queues: [Queue; 2],
    /// Parked messages by rung, each with its expiry in microseconds.
    rungs: [VecDeque<(u64, Message)>; RUNGS.len()],
}

struct Queue {
    messages: VecDeque<Message>,
    /// The workers that may get another message, in round robin.
    open: VecDeque<u32>,
    /// Number of unacknowledged messages by worker.
    unacked: Vec<u16>,
}

impl Broker {
    /// Returns a broker that all of `workers` workers consume from.
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

    /// Returns the next delivery from a queue, if a worker may get one: the worker, and the message.
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

    /// Acknowledges a message that a worker has finished.
    pub(super) fn ack(&mut self, queue: QueueName, worker: u32) {
        let queue = &mut self.queues[queue as usize];
        let unacked = &mut queue.unacked[worker as usize];
        if *unacked == self.prefetch {
            queue.open.push_back(worker);
        }
        *unacked -= 1;
    }

    /// Parks a message on a rung at `now`. If the rung was empty, returns when to call [`expire`](Self::expire).
    pub(super) fn park(&mut self, rung: usize, message: Message, now: u64) -> Option<u64> {
        let expires = now + RUNGS[rung].as_micros() as u64;
        let parked = &mut self.rungs[rung];
        parked.push_back((expires, message));
        (parked.len() == 1).then_some(expires)
    }

    /// Moves expired messages of a rung to the due queue. Returns their number, and when to look again.
    pub(super) fn expire(&mut self, rung: usize, now: u64) -> (u64, Option<u64>) {
        let parked = &mut self.rungs[rung];
        let expired = parked.iter().take_while(|(expires, _)| *expires <= now).count();
        self.queues[QueueName::Due as usize]
            .messages
            .extend(parked.drain(..expired).map(|(_, message)| message));
        (expired as u64, parked.front().map(|(expires, _)| *expires))
    }
}
