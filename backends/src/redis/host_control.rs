//! What people see of hosts, and can do to them.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::ports::{HostBackoff, HostControl, HostState, Result, RobotsEntry, RobotsFile};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::hosts::RedisHosts;
use super::{host_news, keys, robots};
use crate::control_log::Record;

/// Listed for ever.
const FOR_EVER: UnixMs = UnixMs(1 << 52);

#[async_trait]
impl HostControl for RedisHosts {
    async fn hosts(&self) -> Result<Vec<HostState>> {
        let mut listed: Vec<String> =
            self.redis.query(redis::cmd("ZRANGE").arg(keys::HOSTS).arg(0).arg(-1)).await?;
        listed.sort_unstable();
        let listed: Vec<HostKey> = listed.iter().map(|key| HostKey::from_text(key)).collect();
        let states = try_join_all(listed.iter().map(|key| self.host(key))).await?;
        Ok(states.into_iter().flatten().collect())
    }

    async fn host(&self, key: &HostKey) -> Result<Option<HostState>> {
        let mut fields: HashMap<String, String> =
            self.redis.query(redis::cmd("HGETALL").arg(keys::rate_limit(key))).await?;
        // Events of a host that are still to be announced are no schedule.
        fields.retain(|name, _| !host_news::is_news(name));
        Ok((!fields.is_empty()).then(|| state(key, &fields)))
    }

    async fn known_robots(&self, key: &RobotsKey) -> Result<Option<RobotsFile>> {
        let kept = self.redis.value(&keys::robots(key), robots::MAX_STORED).await?;
        Ok(match kept.map(robots::decode).transpose()? {
            Some(RobotsEntry::Known(file)) => Some(file),
            Some(RobotsEntry::Yours | RobotsEntry::Awaited) | None => None,
        })
    }

    async fn block(&self, key: &HostKey) -> Result<()> {
        self.list_for_news(key).await?;
        self.block_and(key, Announcing::All).await?;
        self.write_down(Record::Blocked { host: key.to_string() }).await
    }

    async fn unblock(&self, key: &HostKey) -> Result<bool> {
        self.list_for_news(key).await?;
        let was = self.redis.run::<u8>(self.scripts.block.key(keys::rate_limit(key)).arg(0).arg(1)).await?;
        let () = self
            .redis
            .query(redis::cmd("ZADD").arg(keys::HOSTS).arg("XX").arg(UnixMs::now().0).arg(key.as_str()))
            .await?;
        self.write_down(Record::Unblocked { host: key.to_string() }).await?;
        Ok(was == 1)
    }
}

/// Whether a block is announced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Announcing {
    All,
    /// They know of it.
    Nobody,
}

impl RedisHosts {
    /// Blocks a host again, in a store that has forgotten that it was.
    pub(super) async fn block_in_store(&self, key: &HostKey) -> Result<()> {
        self.block_and(key, Announcing::Nobody).await
    }

    /// The hosts that are blocked.
    pub(super) async fn blocked_in_store(&self) -> Result<Vec<HostKey>> {
        let mut call = redis::cmd("ZRANGE");
        call.arg(keys::HOSTS).arg(FOR_EVER.0).arg("+inf").arg("BYSCORE");
        let hosts: Vec<String> = self.redis.query(&call).await?;
        Ok(hosts.iter().map(|host| HostKey::from_text(host)).collect())
    }

    async fn block_and(&self, key: &HostKey, announcing: Announcing) -> Result<()> {
        let announces = u8::from(announcing == Announcing::All);
        self.redis.run::<u8>(self.scripts.block.key(keys::rate_limit(key)).arg(1).arg(announces)).await?;
        self.list_until(key, FOR_EVER).await
    }

    async fn write_down(&self, record: Record) -> Result<()> {
        match &self.log {
            Some(log) => log.append(&record).await,
            None => Ok(()),
        }
    }
}

fn state(key: &HostKey, fields: &HashMap<String, String>) -> HostState {
    let number = |name: &str| fields.get(name).and_then(|text| text.parse::<u64>().ok());
    let micros = |name: &str| number(name).unwrap_or_default();
    let instant = |name: &str| UnixMs(micros(name) / 1_000);
    let now = UnixMs::now();
    let is_under_way = |(name, times): &(&String, &String)| {
        let until = times.split(' ').nth(1).and_then(|until| until.parse::<u64>().ok());
        name.starts_with("p:") && until.is_some_and(|until| until / 1_000 > now.0)
    };
    HostState {
        key: key.clone(),
        interval: number("interval").map(Duration::from_micros),
        next: instant("next"),
        line: instant("line"),
        requests: number("requests").filter(|_| number("minute") == Some(now.0 / 60_000)).unwrap_or_default(),
        under_way: fields.iter().filter(is_under_way).count() as u64,
        latency: number("latency").filter(|took| *took > 0).map(Duration::from_micros),
        backoff: (instant("until") > UnixMs(0)).then(|| HostBackoff {
            since: instant("since"),
            until: instant("until"),
            strikes: number("strikes").and_then(|strikes| u32::try_from(strikes).ok()).unwrap_or_default(),
            status: number("status").and_then(|status| u16::try_from(status).ok()).unwrap_or_default(),
        }),
        blocked: number("blocked").map(UnixMs),
    }
}
