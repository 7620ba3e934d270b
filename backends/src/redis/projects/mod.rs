//! Projects: a hash of those that people have made, one of their spiders, and one for each thing that is set of them. All
//! have one hash tag, so that a script may change them together.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{
    Error, ErrorKind, MAX_PROJECT_SPIDERS, MAX_PROJECTS, MAX_REPORTS, Projects, Result, owned_by_another,
    too_many_projects, too_many_spiders,
};
use trawl_common::project::{Project, ProjectCode, SealedSecret, Source, VersionReport, Wanted};
use trawl_common::time::UnixMs;

use crate::redis::Link;
use crate::redis::keys::{
    PROJECT_SECRETS, PROJECT_SOURCES, PROJECT_SPIDERS, PROJECT_WANTED, PROJECTS_MADE, project_reports,
};
use crate::redis::scripts::ProjectScripts;

/// The reply of `project.lua`.
type Found = (u64, bool, Option<String>, Option<String>, Vec<String>);

/// The reply of `code.lua`.
type Columns = (Vec<Option<u64>>, Vec<Option<String>>, Vec<Option<String>>, Vec<Option<String>>);

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
        let mut call = self.scripts.project.key(PROJECTS_MADE);
        call.key(PROJECT_SPIDERS).key(PROJECT_SECRETS).key(PROJECT_SOURCES).key(PROJECT_WANTED);
        let found: Option<Found> = self.redis.run(call.arg(name.as_str())).await?;
        let Some((created, has_secret, source, wanted, spiders)) = found else { return Ok(None) };
        let spiders = spiders.iter().map(|name| name.parse().map_err(|_| unreadable(PROJECT_SPIDERS, name)));
        Ok(Some(Project {
            name: name.clone(),
            created: UnixMs(created),
            spiders: spiders.collect::<Result<_>>()?,
            has_secret,
            source: read(PROJECT_SOURCES, name, source)?,
            wanted: read(PROJECT_WANTED, name, wanted)?,
        }))
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

    async fn code(&self, names: &[ProjectName]) -> Result<Vec<Option<ProjectCode>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self.scripts.code.key(PROJECTS_MADE);
        call.key(PROJECT_SECRETS).key(PROJECT_SOURCES).key(PROJECT_WANTED);
        for name in names {
            call.arg(name.as_str());
        }
        let (made, secrets, sources, wanted): Columns = self.redis.run(&call).await?;
        let mut all = Vec::with_capacity(names.len());
        let rows = names.iter().zip(made).zip(secrets).zip(sources).zip(wanted);
        for ((((name, created), secret), source), wanted) in rows {
            let Some(created) = created else {
                all.push(None);
                continue;
            };
            all.push(Some(ProjectCode {
                created: UnixMs(created),
                source: read(PROJECT_SOURCES, name, source)?,
                wanted: read(PROJECT_WANTED, name, wanted)?,
                secret: secret.map(|sealed| sealed.parse()).transpose(),
            }));
        }
        Ok(all)
    }

    async fn set_secret(&self, name: &ProjectName, secret: Option<&SealedSecret>) -> Result<bool> {
        let mut call = self.scripts.set_secret.key(PROJECTS_MADE);
        call.key(PROJECT_SECRETS).arg(name.as_str());
        if let Some(secret) = secret {
            call.arg(secret.to_string());
        }
        self.redis.run(&call).await
    }

    async fn set_source(&self, name: &ProjectName, source: Option<&Source>) -> Result<bool> {
        let mut call = self.scripts.set_source.key(PROJECTS_MADE);
        call.key(PROJECT_SOURCES).key(PROJECT_WANTED).key(project_reports(name)).arg(name.as_str());
        if let Some(source) = source {
            call.arg(json(source));
        }
        self.redis.run(&call).await
    }

    async fn want(&self, name: &ProjectName, wanted: &Wanted) -> Result<bool> {
        let mut call = self.scripts.want.key(PROJECTS_MADE);
        call.key(PROJECT_WANTED).key(project_reports(name)).arg(name.as_str()).arg(json(wanted));
        self.redis.run(&call).await
    }

    async fn note_version(&self, report: &VersionReport) -> Result<()> {
        let VersionReport { project, wanted, machine, .. } = report;
        let mut call = self.scripts.note_version.key(PROJECT_WANTED);
        call.key(project_reports(project)).arg(project.as_str()).arg(json(wanted));
        call.arg(machine.as_str()).arg(json(report)).arg(MAX_REPORTS);
        self.redis.run(&call).await
    }

    async fn reports(&self, name: &ProjectName) -> Result<Vec<VersionReport>> {
        let key = project_reports(name);
        let stored: BTreeMap<String, String> = self.redis.query(redis::cmd("HGETALL").arg(&key)).await?;
        let read = |(machine, text): (String, String)| {
            serde_json::from_str(&text).map_err(|_| unreadable(&key, &machine))
        };
        stored.into_iter().map(read).collect()
    }

    async fn forget(&self, name: &ProjectName) -> Result<bool> {
        let mut call = self.scripts.forget.key(PROJECTS_MADE);
        call.key(project_reports(name));
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

/// Reads a field of a project from JSON, if it has one.
fn read<T: DeserializeOwned>(key: &str, name: &ProjectName, text: Option<String>) -> Result<Option<T>> {
    text.map(|text| serde_json::from_str(&text).map_err(|_| unreadable(key, name.as_str()))).transpose()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts are JSON")
}

/// Returns the error for a field that cannot be read, whose value is not shown: it may be a secret.
fn unreadable(key: &str, field: &str) -> Error {
    let message = format!("redis: {field} of {key} is not what trawl writes: set it right, or remove it");
    Error::new(ErrorKind::Corrupt, message)
}
