//! Script calls for several hosts at once: a call for each would be most of the cost for Redis and the caller.

use std::collections::BTreeMap;

use futures::future::join_all;
use redis::{FromRedisValue, Script, ScriptInvocation};
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::web::host::HostKey;

use crate::redis::script_calls::BATCH;
use crate::redis::{Link, keys};

/// The hosts of one call, each once, with the positions of their entries in the caller's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a>(pub(crate) Vec<(&'a HostKey, Vec<usize>)>);

impl<'a> Part<'a> {
    /// Iterates over all positions, in the order in which the script gets them.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.0.iter().flat_map(|(_, places)| places.iter().copied())
    }

    fn len(&self) -> usize {
        self.places().count()
    }

    fn each_alone(self) -> impl Iterator<Item = Self> {
        self.0.into_iter().map(|host| Self(vec![host]))
    }
}

/// Splits the hosts of `entries` into as few calls as possible. On a cluster each host may live in another slot,
/// so each has a call of its own.
pub(crate) fn parts<'a, T>(
    redis: &Link,
    entries: &'a [T],
    key: impl Fn(&'a T) -> &'a HostKey,
) -> Vec<Part<'a>> {
    let mut places: BTreeMap<&HostKey, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        places.entry(key(entry)).or_default().push(at);
    }
    grouped(places, if redis.is_cluster() { 1 } else { BATCH })
}

/// Groups hosts into calls with at most `hosts` hosts and [`BATCH`] positions each. A host that has more is split.
fn grouped(places: BTreeMap<&HostKey, Vec<usize>>, hosts: usize) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (host, places) in places {
        for places in places.chunks(BATCH) {
            let fits = |part: &&mut Part<'_>| {
                part.0.len() < hosts
                    && part.len() + places.len() <= BATCH
                    && part.0.iter().all(|(other, _)| *other != host)
            };
            let host = (host, places.to_vec());
            match parts.last_mut().filter(fits) {
                Some(part) => part.0.push(host),
                None => parts.push(Part(vec![host])),
            }
        }
    }
    parts
}

/// Calls `script` for a part; `tell` adds the arguments for the entry at a position. If the key of a host holds
/// something else, each host gets a call of its own, so that only that one gets an error.
pub(crate) async fn call<'a, A: FromRedisValue>(
    redis: &Link,
    script: &Script,
    part: Part<'a>,
    tell: impl Fn(&mut ScriptInvocation<'_>, usize),
) -> Vec<(Part<'a>, Result<A>)> {
    let answer = redis.run(&invocation(script, &part, &tell)).await;
    match answer {
        Err(error) if error.kind == ErrorKind::Corrupt && part.0.len() > 1 => {
            let tell = &tell;
            let alone = part.each_alone().map(|part| async move {
                let answer = redis.run(&invocation(script, &part, tell)).await;
                (part, answer)
            });
            join_all(alone).await
        }
        answer => vec![(part, answer)],
    }
}

fn invocation<'s>(
    script: &'s Script,
    part: &Part<'_>,
    tell: &impl Fn(&mut ScriptInvocation<'s>, usize),
) -> ScriptInvocation<'s> {
    let mut call = script.prepare_invoke();
    for (host, places) in &part.0 {
        call.key(keys::rate_limit(host)).arg(places.len());
        places.iter().for_each(|&place| tell(&mut call, place));
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of entries of each host in each call.
    fn sizes(of_hosts: &[usize], hosts: usize) -> Vec<Vec<usize>> {
        let names: Vec<_> =
            (0..of_hosts.len()).map(|number| HostKey::from_text(&format!("{number}.example"))).collect();
        let places = names.iter().zip(of_hosts).map(|(name, &size)| (name, (0..size).collect())).collect();
        let parts = grouped(places, hosts);
        parts.iter().map(|Part(hosts)| hosts.iter().map(|(_, places)| places.len()).collect()).collect()
    }

    #[test]
    fn hosts_share_calls_up_to_a_size_and_none_is_twice_in_one() {
        assert_eq!(sizes(&[1, 2, 3], BATCH), [[1, 2, 3]]);
        assert_eq!(sizes(&[1, 2, 3], 1), [[1], [2], [3]]);
        assert_eq!(sizes(&[BATCH - 1, 2, 1], BATCH), [vec![BATCH - 1], vec![2, 1]]);
        assert_eq!(sizes(&[BATCH + 1, 1], BATCH), [vec![BATCH], vec![1, 1]]);
        assert_eq!(sizes(&[2 * BATCH + 1], BATCH), [[BATCH], [BATCH], [1]]);
    }
}
