//! Lists, blocks and unblocks hosts.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{ErrorKind, HostBackoff, HostControl, HostState, Result, RobotsEntry};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use crate::control_log::{LoggedHost, Record};
use crate::redis::hosts::RedisHosts;
use crate::redis::hosts::news;
use crate::redis::hosts::robots;
use crate::redis::script_calls::optional;
use crate::redis::server::durability::IN_LOG;
use crate::redis::{Link, keys};

/// The expiry of entries that are listed forever.
const FOR_EVER: UnixMs = UnixMs(1 << 52);

#[async_trait]
impl HostControl for RedisHosts {
    async fn hosts(&self) -> Result<Vec<HostState>> {
        let mut listed: Vec<String> =
            self.redis.query(redis::cmd("ZRANGE").arg(keys::HOSTS).arg(0).arg(-1)).await?;
        listed.sort_unstable();
        let listed: Vec<HostKey> = listed.iter().map(|key| HostKey::from_text(key)).collect();
        let state = async |key| match self.host(key).await {
            // URLs of that host make no progress, which is logged: all other hosts are listed.
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(None),
            state => state,
        };
        let states = try_join_all(listed.iter().map(state)).await?;
        Ok(states.into_iter().flatten().collect())
    }

    async fn host(&self, key: &HostKey) -> Result<Option<HostState>> {
        let mut fields: HashMap<String, String> =
            self.redis.query(redis::cmd("HGETALL").arg(keys::rate_limit(key))).await?;
        // Neither a host's pending events nor the instant of its last order is part of its schedule.
        fields.retain(|name, _| !news::is_news(name) && name != "ordered");
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
        self.order(key, true).await.map(drop)
    }

    async fn unblock(&self, key: &HostKey) -> Result<bool> {
        self.order(key, false).await
    }
}

impl RedisHosts {
    /// Blocks a host, or ends a block and a back-off. Returns whether there was either.
    async fn order(&self, key: &HostKey, is_blocked: bool) -> Result<bool> {
        self.list_for_news(key).await?;
        let apart = self.redis.apart().await?;
        let (was, ordered) = self.change(&apart, key, is_blocked, None).await?;
        self.list_as(key, is_blocked).await?;
        if let Some(log) = &self.log {
            log.orders.append([Record::host(key, LoggedHost { is_blocked, ordered })]).await?;
        }
        apart.until_durable(&keys::rate_limit(key), IN_LOG).await;
        Ok(was)
    }

    /// Applies the last order about a host from the log, unless a later one is known here. It is not announced again.
    pub(crate) async fn carry_out_logged(&self, key: &HostKey, last: LoggedHost) -> Result<()> {
        let (_, ordered) = self.change(&self.redis, key, last.is_blocked, Some(last.ordered)).await?;
        if ordered <= last.ordered { self.list_as(key, last.is_blocked).await } else { Ok(()) }
    }

    /// Changes the schedule of a host. Returns whether there was a block or a back-off, and the instant of the last
    /// order.
    async fn change(
        &self,
        link: &Link,
        key: &HostKey,
        is_blocked: bool,
        logged: Option<UnixMs>,
    ) -> Result<(bool, UnixMs)> {
        let mut call = self.scripts.block.key(keys::rate_limit(key));
        call.arg(u8::from(is_blocked)).arg(u8::from(logged.is_none())).arg(optional(logged.map(|at| at.0)));
        let (was, ordered): (bool, u64) = link.run(&call).await?;
        Ok((was, UnixMs(ordered)))
    }

    /// Lists a blocked host forever, and any other as before, if it is listed.
    async fn list_as(&self, key: &HostKey, is_blocked: bool) -> Result<()> {
        if is_blocked {
            return self.list_until(key, FOR_EVER).await;
        }
        let now = UnixMs::now().0;
        self.redis.query(redis::cmd("ZADD").arg(keys::HOSTS).arg("XX").arg(now).arg(key.as_str())).await
    }

    /// Returns the blocked hosts, each with the instant of the last order about it.
    pub(crate) async fn blocked_in_store(&self) -> Result<Vec<(HostKey, LoggedHost)>> {
        let mut call = redis::cmd("ZRANGE");
        call.arg(keys::HOSTS).arg(FOR_EVER.0).arg("+inf").arg("BYSCORE");
        let hosts: Vec<String> = self.redis.query(&call).await?;
        let mut blocked = Vec::with_capacity(hosts.len());
        for key in hosts.iter().map(|host| HostKey::from_text(host)) {
            let known = redis::cmd("HGET").arg(keys::rate_limit(&key)).arg("ordered").to_owned();
            let ordered = UnixMs(self.redis.query::<Option<u64>>(&known).await?.unwrap_or_default());
            blocked.push((key, LoggedHost { is_blocked: true, ordered }));
        }
        Ok(blocked)
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
