//! Runners: the set `runners`, and a hash for each, `runners:<name>`, with the digest of its key and its access.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use redis::Script;
use tracing::warn;
use trawl_common::names::{ProjectName, RunnerName};
use trawl_common::ports::{Access, Error, ErrorKind, KeyDigest, MAX_RUNNERS, Result, Runner, Runners};
use trawl_common::time::UnixMs;

use crate::redis::fields::Fields;
use crate::redis::scripts::{allow_runner, ask_runner};
use crate::redis::{Link, keys};

/// The start of a field with the access to a project.
const ACCESS: &str = "access:";

/// Runners on Redis.
pub struct RedisRunners {
    redis: Link,
    ask: Script,
    allow: Script,
}

impl RedisRunners {
    /// Creates the runners on this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis, ask: ask_runner(), allow: allow_runner() }
    }

    async fn names(&self) -> Result<Vec<RunnerName>> {
        let names: Vec<String> = self.redis.query(redis::cmd("SMEMBERS").arg(keys::RUNNERS)).await?;
        let mut names: Vec<RunnerName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Makes room for another runner, if there is none.
    async fn make_room(&self) -> Result<()> {
        let count: usize = self.redis.query(redis::cmd("SCARD").arg(keys::RUNNERS)).await?;
        if count < MAX_RUNNERS {
            return Ok(());
        }
        let now = UnixMs::now();
        let mut left = count;
        for runner in self.runners().await?.into_iter().filter(|runner| runner.is_forgettable(now)) {
            self.forget(&runner.name).await?;
            left -= 1;
        }
        if left < MAX_RUNNERS { Ok(()) } else { Err(too_many()) }
    }
}

/// Returns the error of a runner for which there is no room.
fn too_many() -> Error {
    let text =
        format!("{MAX_RUNNERS} runners are known: an operator has to forget some (`trawl runner forget`)");
    Error::new(ErrorKind::Refused, text)
}

#[async_trait]
impl Runners for RedisRunners {
    async fn ask(&self, name: &RunnerName, key: &KeyDigest) -> Result<Runner> {
        if self.runner(name).await?.is_none() {
            self.make_room().await?;
            let () = self.redis.query(redis::cmd("SADD").arg(keys::RUNNERS).arg(name.as_str())).await?;
        }
        let mut call = self.ask.key(keys::runner(name));
        call.arg(key.to_string()).arg(UnixMs::now().0);
        let stored = self.redis.run(&call).await?;
        read(name, stored)?
            .ok_or_else(|| Error::new(ErrorKind::Unavailable, "redis: a runner was forgotten as it asked"))
    }

    async fn runner(&self, name: &RunnerName) -> Result<Option<Runner>> {
        let stored = self.redis.query(redis::cmd("HGETALL").arg(keys::runner(name))).await?;
        read(name, stored)
    }

    async fn runners(&self) -> Result<Vec<Runner>> {
        let mut runners = Vec::new();
        for name in self.names().await? {
            match self.runner(&name).await {
                Ok(runner) => runners.extend(runner),
                Err(error) if error.kind == ErrorKind::Corrupt => warn!(%error, "a runner is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(runners)
    }

    async fn allow(&self, name: &RunnerName, project: &ProjectName, access: Access) -> Result<bool> {
        let mut call = self.allow.key(keys::runner(name));
        call.arg(format!("{ACCESS}{project}")).arg(access.to_string());
        self.redis.run(&call).await
    }

    async fn revoke(&self, name: &RunnerName, project: Option<&ProjectName>) -> Result<bool> {
        let fields: Vec<String> = match project {
            Some(project) => vec![format!("{ACCESS}{project}")],
            None => {
                let all: Vec<String> = self.redis.query(redis::cmd("HKEYS").arg(keys::runner(name))).await?;
                all.into_iter().filter(|field| field.starts_with(ACCESS)).collect()
            }
        };
        if fields.is_empty() {
            return Ok(false);
        }
        let removed: u64 = self.redis.query(redis::cmd("HDEL").arg(keys::runner(name)).arg(fields)).await?;
        Ok(removed > 0)
    }

    async fn forget(&self, name: &RunnerName) -> Result<bool> {
        let removed: u64 = self.redis.query(redis::cmd("DEL").arg(keys::runner(name))).await?;
        let () = self.redis.query(redis::cmd("SREM").arg(keys::RUNNERS).arg(name.as_str())).await?;
        Ok(removed > 0)
    }
}

/// Returns the runner that these fields describe; `None` if it has no key.
fn read(name: &RunnerName, stored: HashMap<String, String>) -> Result<Option<Runner>> {
    let fields = Fields::new(keys::runner(name), stored);
    let Some(key) = fields.read("key")? else { return Ok(None) };
    let mut access = BTreeMap::new();
    for field in fields.names() {
        let Some(project) = field.strip_prefix(ACCESS) else { continue };
        let project: ProjectName = project.parse().map_err(|error| fields.nonsense(&error))?;
        access.insert(project, fields.required::<Access>(field)?);
    }
    let instant = |name| fields.required(name).map(UnixMs);
    Ok(Some(Runner { name: name.clone(), key, since: instant("since")?, asked: instant("asked")?, access }))
}
