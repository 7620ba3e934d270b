//! Signatures of trawl's own messages by the fleet's key.
//!
//! The signature covers the purpose of a message, its body, and its headers, including those that only newer
//! programs read: so an older program recognises the fleet's messages too. Headers that the broker adds are not
//! signed, and nothing that could do harm is read from them.

use hmac::{Hmac, KeyInit, Mac};
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use sha2::Sha256;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::trace::{TRACE_PARENT, TRACE_STATE};
use trawl_common::settings;

use super::newer::is_brokers;

/// The header of the signature.
pub(crate) const SIGNATURE: &str = "sig";
/// Number of bytes of a signature that are sent: 128 bits.
const LENGTH: usize = 16;

/// Every header of trawl's that is read from a message, in the order in which they are signed. Any other follows
/// these, ordered by name. So no name may be added here: older programs would expect it at another position.
pub(super) const SIGNED: [&str; 16] = [
    "crawl", "spider", "lane", "depth", "deadline", "until", "wake", "slot", "turn", "looks", "referrer",
    "hop", "hops", "refusals", "probe", "before",
];

/// Headers that programs before this one do not know and take for unsigned: a message with one has the same
/// signature as without it. Changing them only misleads people who look at traces.
const UNSIGNED: [&str; 2] = [TRACE_PARENT, TRACE_STATE];

/// The purpose of a message. A signature for one purpose is invalid for another.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// To wake up a URL.
    Wake,
    /// To probe this queue.
    Probe(SourceQueue),
    /// To record an operator's command.
    Control,
    /// To record a submission.
    Journal,
    /// To report an event.
    Event,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The fleet: the message is signed by one of its keys.
    Fleet,
    /// Someone else, or the fleet with a key that this process does not know.
    Stranger,
    /// Unknown, because this fleet has no key.
    Anyone,
}

/// The fleet's current key, and its former ones.
#[derive(Clone, Default)]
pub struct Seal {
    keys: Vec<Hmac<Sha256>>,
}

impl Seal {
    /// Creates the seal from the keys in settings; without one, nothing is signed and no message can be trusted
    /// more than another.
    pub fn new(settings: &settings::RabbitMq) -> Self {
        let keys = settings.key.iter().chain(&settings.former_keys);
        // HMAC accepts a key of any length.
        Self { keys: keys.filter_map(|key| Hmac::new_from_slice(key.reveal()).ok()).collect() }
    }

    /// Returns whether the fleet has a key.
    pub(super) fn is_set(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Signs a message, if there is a key.
    pub fn sign(&self, purpose: Purpose, body: &[u8], headers: &mut FieldTable) {
        let Some(key) = self.keys.first() else { return };
        let signature = digest(key, purpose, body, headers).finalize().into_bytes();
        let text = data_encoding::HEXLOWER.encode(&signature[..LENGTH]);
        headers.insert(ShortString::from(SIGNATURE), AMQPValue::LongString(LongString::from(text)));
    }

    /// Returns the author of a message.
    pub fn author(&self, purpose: Purpose, body: &[u8], headers: &FieldTable) -> Author {
        if self.keys.is_empty() {
            return Author::Anyone;
        }
        let signature = match headers.inner().get(SIGNATURE) {
            Some(AMQPValue::LongString(text)) => data_encoding::HEXLOWER.decode(text.as_bytes()).ok(),
            _ => None,
        };
        let Some(signature) = signature.filter(|signature| signature.len() == LENGTH) else {
            return Author::Stranger;
        };
        let is_by = |key| digest(key, purpose, body, headers).verify_truncated_left(&signature).is_ok();
        if self.keys.iter().any(is_by) { Author::Fleet } else { Author::Stranger }
    }
}

/// Returns whether a header that is not in [`SIGNED`] is signed.
fn is_signed_beside(name: &str) -> bool {
    name != SIGNATURE && !UNSIGNED.contains(&name) && !is_brokers(name) && !SIGNED.contains(&name)
}

/// Computes the digest of the signed parts, each preceded by its length, so that no two messages have the same
/// input.
fn digest(key: &Hmac<Sha256>, purpose: Purpose, body: &[u8], headers: &FieldTable) -> Hmac<Sha256> {
    let mut digest = key.clone();
    let mut put = |part: &[u8]| {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    };
    match purpose {
        Purpose::Wake => put(b"trawl wake 1"),
        Purpose::Probe(source) => {
            put(b"trawl probe 1");
            put(source.as_str().as_bytes());
        }
        Purpose::Control => put(b"trawl control 1"),
        Purpose::Journal => put(b"trawl journal 1"),
        Purpose::Event => put(b"trawl event 1"),
    }
    put(body);
    let known = SIGNED.iter().filter_map(|name| Some((*name, headers.inner().get(*name)?)));
    let others = headers.inner().iter().map(|(name, value)| (name.as_str(), value));
    for (name, value) in known.chain(others.filter(|(name, _)| is_signed_beside(name))) {
        put(name.as_bytes());
        // A broker may send a number on in another type: only its value counts.
        match value {
            AMQPValue::LongString(text) => put(text.as_bytes()),
            AMQPValue::ShortString(text) => put(text.as_str().as_bytes()),
            AMQPValue::LongLongInt(number) => put(&number.to_be_bytes()),
            AMQPValue::LongInt(number) => put(&i64::from(*number).to_be_bytes()),
            AMQPValue::ShortInt(number) => put(&i64::from(*number).to_be_bytes()),
            AMQPValue::ShortShortInt(number) => put(&i64::from(*number).to_be_bytes()),
            // trawl writes none of these types.
            other => put(format!("{other:?}").as_bytes()),
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(keys: &[&str]) -> Seal {
        let mut keys = keys.iter().map(|key| settings::FleetKey::try_from(key.repeat(32)).unwrap());
        let key = keys.next();
        Seal::new(&settings::RabbitMq { key, former_keys: keys.collect(), ..settings::RabbitMq::default() })
    }

    fn signed(by: &Seal) -> FieldTable {
        let mut headers = FieldTable::default();
        headers.insert("crawl".into(), AMQPValue::LongString("c".into()));
        headers.insert("slot".into(), AMQPValue::LongLongInt(7));
        by.sign(Purpose::Wake, b"body", &mut headers);
        headers
    }

    #[test]
    fn a_message_is_the_fleets_if_its_key_signed_it_now_or_before() {
        let headers = signed(&seal(&["a"]));
        let author = |seal: &Seal| seal.author(Purpose::Wake, b"body", &headers);
        assert_eq!(author(&seal(&["a"])), Author::Fleet);
        assert_eq!(author(&seal(&["b", "a"])), Author::Fleet, "a key that was changed");
        assert_eq!(author(&seal(&["b"])), Author::Stranger, "a key that nobody knows any more");
        assert_eq!(author(&seal(&[])), Author::Anyone);
        assert_eq!(signed(&seal(&["b", "a"])), signed(&seal(&["b"])), "only the newest one signs");
        assert!(!signed(&seal(&[])).contains_key(SIGNATURE));
    }

    #[test]
    fn whoever_changes_anything_of_a_message_is_a_stranger() {
        let seal = seal(&["a"]);
        let headers = signed(&seal);
        for name in SIGNED.into_iter().chain(["v", "what a newer program adds"]) {
            let mut changed = headers.clone();
            changed.insert(name.into(), AMQPValue::LongLongInt(8));
            assert_eq!(seal.author(Purpose::Wake, b"body", &changed), Author::Stranger, "{name}");
        }
        let stranger = |purpose, body: &[u8]| seal.author(purpose, body, &headers) == Author::Stranger;
        assert!(stranger(Purpose::Wake, b"bodY"));
        assert!(stranger(Purpose::Control, b"body"));
        let sources = SourceQueue::ALL.map(|source| {
            let mut headers = FieldTable::default();
            seal.sign(Purpose::Probe(source), b"probe", &mut headers);
            SourceQueue::ALL
                .map(|other| seal.author(Purpose::Probe(other), b"probe", &headers) == Author::Fleet)
        });
        assert!(
            sources
                .iter()
                .enumerate()
                .all(|(at, source)| source.iter().enumerate().all(|(other, ok)| *ok == (at == other)))
        );
        for wrong in ["", "00", &"0".repeat(32), "no hex"] {
            let mut forged = headers.clone();
            forged.insert(SIGNATURE.into(), AMQPValue::LongString(wrong.into()));
            assert_eq!(seal.author(Purpose::Wake, b"body", &forged), Author::Stranger, "{wrong}");
        }
    }

    #[test]
    fn what_a_broker_adds_or_writes_otherwise_breaks_no_signature() {
        let seal = seal(&["a"]);
        let mut headers = signed(&seal);
        headers.insert("x-death".into(), AMQPValue::FieldArray(Default::default()));
        headers.insert("slot".into(), AMQPValue::LongInt(7));
        assert_eq!(seal.author(Purpose::Wake, b"body", &headers), Author::Fleet);
    }
}
