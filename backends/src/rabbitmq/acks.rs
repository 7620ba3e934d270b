//! Batched acknowledgements: one frame up to the low watermark, stragglers singly.

use std::collections::BTreeMap;

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    /// The delivery.
    pub(super) tag: u64,
    /// Whether it covers every delivery before it too.
    pub(super) multiple: bool,
}

/// The settled deliveries of one channel, whose tags count up from 1.
///
/// The low watermark is the tag up to which all are settled. Settled ones above it are held back until it passes
/// them, but never more than `most`: a slow page must not use up the prefetch window.
#[derive(Debug)]
pub(super) struct Acks {
    low: u64,
    /// Settled deliveries above `low`, and whether the broker knows.
    above: BTreeMap<u64, Known>,
    held_back: usize,
    most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    ToUs,
    ToBroker,
}

impl Acks {
    pub(super) fn new(most: usize) -> Self {
        Self { low: 0, above: BTreeMap::new(), held_back: 0, most }
    }

    /// Settles these deliveries; returns the acknowledgements to send now, in order.
    pub(super) fn settle(&mut self, tags: impl IntoIterator<Item = u64>) -> Vec<Ack> {
        for tag in tags {
            if tag > self.low && self.above.insert(tag, Known::ToUs).is_none() {
                self.held_back += 1;
            }
        }
        let mut send = Vec::new();
        send.extend(self.advance());
        if self.held_back > self.most {
            send.extend(self.flush());
        }
        send
    }

    /// Notes a delivery that was settled in another way, by giving it back.
    pub(super) fn returned(&mut self, tag: u64) -> Option<Ack> {
        if tag > self.low && self.above.insert(tag, Known::ToBroker) == Some(Known::ToUs) {
            self.held_back -= 1;
        }
        self.advance()
    }

    /// Returns whether any acknowledgement is held back.
    pub(super) fn holds_back(&self) -> bool {
        self.held_back > 0
    }

    /// Returns all acknowledgements that are held back, to be sent now.
    pub(super) fn flush(&mut self) -> Vec<Ack> {
        self.held_back = 0;
        let held_back = self.above.iter_mut().filter(|(_, known)| **known == Known::ToUs);
        held_back
            .map(|(&tag, known)| {
                *known = Known::ToBroker;
                Ack { tag, multiple: false }
            })
            .collect()
    }

    /// Raises the low watermark. The acknowledged tag is one that the broker does not know yet: a known one would
    /// make it close the channel.
    fn advance(&mut self) -> Option<Ack> {
        let mut highest = None;
        while let Some(known) = self.above.remove(&(self.low + 1)) {
            self.low += 1;
            if known == Known::ToUs {
                self.held_back -= 1;
                highest = Some(self.low);
            }
        }
        highest.map(|tag| Ack { tag, multiple: true })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A broker's handling of acknowledgements: it closes the channel on a tag that it does not wait for.
    struct Broker {
        unacked: BTreeSet<u64>,
    }

    impl Broker {
        fn take(&mut self, ack: Ack) {
            assert!(self.unacked.contains(&ack.tag), "unknown delivery tag {}", ack.tag);
            self.unacked.retain(|&tag| if ack.multiple { tag > ack.tag } else { tag != ack.tag });
        }
    }

    #[test]
    fn deliveries_settled_in_order_cost_one_frame() {
        let mut acks = Acks::new(100);
        assert_eq!(acks.settle([2, 1, 3]), [Ack { tag: 3, multiple: true }]);
    }

    #[test]
    fn a_straggler_holds_back_a_bounded_number() {
        let mut acks = Acks::new(2);
        assert_eq!(acks.settle([2, 3]), []);
        let singly = |tag| Ack { tag, multiple: false };
        assert_eq!(acks.settle([4]), [singly(2), singly(3), singly(4)]);
        assert_eq!(acks.settle([1]), [Ack { tag: 1, multiple: true }]);
        assert_eq!(acks.settle([5]), [Ack { tag: 5, multiple: true }]);
    }

    proptest! {
        #[test]
        fn in_any_order_each_delivery_is_acked_once_and_none_before_it_is_settled(
            order in Just((1u64..=60).collect::<Vec<_>>()).prop_shuffle(),
            batch in 1usize..7,
            most in 0usize..20,
            returned in prop::collection::btree_set(1u64..=60, 0..10),
        ) {
            let mut broker = Broker { unacked: (1..=60).collect() };
            let mut acks = Acks::new(most);
            let mut settled = BTreeSet::new();
            for tags in order.chunks(batch) {
                let (back, done): (Vec<u64>, Vec<u64>) = tags.iter().partition(|tag| returned.contains(tag));
                settled.extend(tags);
                let mut send = Vec::new();
                for tag in back {
                    broker.unacked.remove(&tag);
                    send.extend(acks.returned(tag));
                }
                send.extend(acks.settle(done));
                for ack in send {
                    broker.take(ack);
                }
                let early: Vec<_> = (1..=60).filter(|t| !broker.unacked.contains(t) && !settled.contains(t)).collect();
                prop_assert!(early.is_empty(), "acked before they were settled: {:?}", early);
                prop_assert!(settled.intersection(&broker.unacked).count() <= most);
            }
            prop_assert!(broker.unacked.is_empty());
        }
    }
}
