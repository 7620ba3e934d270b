//! Projects: a hash of those that people have made, one of their spiders, and one for each thing that is set of them. All
//! have one hash tag, so that a script may change them together.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{
    Error, ErrorKind, MAX_PROJECT_SPIDERS, MAX_PROJECTS, Projects, Result, owned_by_another,
    too_many_projects, too_many_spiders,
};
use trawl_common::project::{Project, SealedSecret, Source, Wanted};
use trawl_common::time::UnixMs;

use crate::redis::Link;
use crate::redis::keys::{PROJECT_SECRETS, PROJECT_SOURCES, PROJECT_SPIDERS, PROJECT_WANTED, PROJECTS_MADE};
use crate::redis::scripts::ProjectScripts;

/// Projects on Redis.
pub struct RedisProjects {
    redis: Link,
    scripts: ProjectScripts,
}

impl RedisProjects {
    /// Creates the projects on this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis, scripts: ProjectScripts::new() }
    }

    /// Sets or removes a field of a project that was made, at the first of these keys, and removes those at the others.
    async fn set(&self, name: &ProjectName, keys: &[&str], value: Option<String>) -> Result<bool> {
        let mut call = self.scripts.set.key(PROJECTS_MADE);
        for key in keys {
            call.key(*key);
        }
        call.arg(name.as_str());
        if let Some(value) = value {
            call.arg(value);
        }
        self.redis.run(&call).await
    }

    /// Returns the values of a hash by project.
    async fn json<T: DeserializeOwned>(&self, key: &str) -> Result<HashMap<String, T>> {
        let stored: Vec<(String, String)> = self.redis.query(redis::cmd("HGETALL").arg(key)).await?;
        let read = |(name, text): (String, String)| match serde_json::from_str(&text) {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(unreadable(key, &name)),
        };
        stored.into_iter().map(read).collect()
    }

    /// Returns all projects, by name.
    async fn all(&self) -> Result<BTreeMap<ProjectName, Project>> {
        let made: Vec<(String, u64)> = self.redis.query(redis::cmd("HGETALL").arg(PROJECTS_MADE)).await?;
        let spiders: Vec<(String, String)> =
            self.redis.query(redis::cmd("HGETALL").arg(PROJECT_SPIDERS)).await?;
        let sealed: HashSet<String> = self.redis.query(redis::cmd("HKEYS").arg(PROJECT_SECRETS)).await?;
        let sources = self.json::<Source>(PROJECT_SOURCES).await?;
        let wanted = self.json::<Wanted>(PROJECT_WANTED).await?;
        let mut all = BTreeMap::new();
        for (name, created) in made {
            let parsed: ProjectName = name.parse().map_err(|_| unreadable(PROJECTS_MADE, &name))?;
            let project = Project {
                name: parsed.clone(),
                created: UnixMs(created),
                spiders: Default::default(),
                has_secret: sealed.contains(&name),
                source: sources.get(&name).cloned(),
                wanted: wanted.get(&name).cloned(),
            };
            all.insert(parsed, project);
        }
        for (spider, owner) in spiders {
            let unreadable = || unreadable(PROJECT_SPIDERS, &spider);
            let (owner, spider) = (owner.parse::<ProjectName>().ok(), spider.parse().ok());
            let (owner, spider) = owner.zip(spider).ok_or_else(unreadable)?;
            // Otherwise it was forgotten, or made, in between.
            if let Some(project) = all.get_mut(&owner) {
                project.spiders.insert(spider);
            }
        }
        Ok(all)
    }
}

#[async_trait]
impl Projects for RedisProjects {
    async fn create(&self, name: &ProjectName) -> Result<bool> {
        let mut call = self.scripts.create.key(PROJECTS_MADE);
        call.arg(name.as_str()).arg(UnixMs::now().0).arg(MAX_PROJECTS);
        let created: i64 = self.redis.run(&call).await?;
        if created < 0 { Err(too_many_projects()) } else { Ok(created == 1) }
    }

    async fn project(&self, name: &ProjectName) -> Result<Option<Project>> {
        Ok(self.all().await?.remove(name))
    }

    async fn made(&self) -> Result<Vec<Project>> {
        Ok(self.all().await?.into_values().collect())
    }

    async fn add_spider(&self, name: &ProjectName, spider: &SpiderName) -> Result<bool> {
        let mut call = self.scripts.add_spider.key(PROJECTS_MADE);
        call.key(PROJECT_SPIDERS).arg(name.as_str()).arg(spider.as_str()).arg(MAX_PROJECT_SPIDERS);
        let owner: Option<String> = self.redis.run(&call).await?;
        match owner {
            None => Ok(false),
            Some(owner) if owner.is_empty() => Err(too_many_spiders()),
            Some(owner) if owner == name.as_str() => Ok(true),
            Some(owner) => {
                let owner = owner.parse().map_err(|_| unreadable(PROJECT_SPIDERS, spider.as_str()))?;
                Err(owned_by_another(spider, &owner))
            }
        }
    }

    async fn remove_spider(&self, name: &ProjectName, spider: &SpiderName) -> Result<bool> {
        let mut call = self.scripts.remove_spider.key(PROJECT_SPIDERS);
        self.redis.run(call.arg(name.as_str()).arg(spider.as_str())).await
    }

    async fn secret(&self, name: &ProjectName) -> Result<Option<SealedSecret>> {
        let read = redis::cmd("HGET").arg(PROJECT_SECRETS).arg(name.as_str()).to_owned();
        let sealed: Option<String> = self.redis.query(&read).await?;
        let unreadable = |_| unreadable(PROJECT_SECRETS, name.as_str());
        sealed.map(|sealed| sealed.parse().map_err(unreadable)).transpose()
    }

    async fn set_secret(&self, name: &ProjectName, secret: Option<&SealedSecret>) -> Result<bool> {
        self.set(name, &[PROJECT_SECRETS], secret.map(ToString::to_string)).await
    }

    async fn set_source(&self, name: &ProjectName, source: Option<&Source>) -> Result<bool> {
        self.set(name, &[PROJECT_SOURCES, PROJECT_WANTED], source.map(json)).await
    }

    async fn wanted(&self, name: &ProjectName) -> Result<Option<Wanted>> {
        let read = redis::cmd("HGET").arg(PROJECT_WANTED).arg(name.as_str()).to_owned();
        let wanted: Option<String> = self.redis.query(&read).await?;
        let unreadable = |_| unreadable(PROJECT_WANTED, name.as_str());
        wanted.map(|wanted| serde_json::from_str(&wanted).map_err(unreadable)).transpose()
    }

    async fn want(&self, name: &ProjectName, wanted: &Wanted) -> Result<bool> {
        self.set(name, &[PROJECT_WANTED], Some(json(wanted))).await
    }

    async fn forget(&self, name: &ProjectName) -> Result<bool> {
        let mut call = self.scripts.forget.key(PROJECTS_MADE);
        call.key(PROJECT_SPIDERS).key(PROJECT_SECRETS).key(PROJECT_SOURCES).key(PROJECT_WANTED);
        call.arg(name.as_str());
        self.redis.run(&call).await
    }

    async fn owners(&self, spiders: &[SpiderName]) -> Result<Vec<Option<ProjectName>>> {
        if spiders.is_empty() {
            return Ok(Vec::new());
        }
        let mut read = redis::cmd("HMGET");
        read.arg(PROJECT_SPIDERS);
        for spider in spiders {
            read.arg(spider.as_str());
        }
        let owners: Vec<Option<String>> = self.redis.query(&read).await?;
        let named = |(owner, spider): (Option<String>, &SpiderName)| {
            let unreadable = |_| unreadable(PROJECT_SPIDERS, spider.as_str());
            owner.map(|owner| owner.parse().map_err(unreadable)).transpose()
        };
        owners.into_iter().zip(spiders).map(named).collect()
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts are JSON")
}

/// Returns the error for a field that cannot be read, whose value is not shown: it may be a secret.
fn unreadable(key: &str, field: &str) -> Error {
    let message = format!("redis: {field} of {key} is not what trawl writes: set it right, or remove it");
    Error::new(ErrorKind::Corrupt, message)
}
