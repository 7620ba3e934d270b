//! The versions of projects on Redis: the set `projects`, and a hash for each, `project:<name>`
//! (`jobs/versions/project.lua`).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{Deployed, Error, ErrorKind, MAX_VERSIONS, Result, SpiderStore};
use trawl_common::spider::{FileHash, SpiderFiles, SpiderText, Version};
use trawl_common::time::UnixMs;

use crate::journal::Record;
use crate::redis::Link;
use crate::redis::journal::{Journaled, RedisJournal};
use crate::redis::keys;
use crate::redis::scripts::{Clock, VersionScripts};

/// The versions of a fleet's projects.
pub struct RedisSpiderStore {
    redis: Link,
    scripts: VersionScripts,
    journal: Journaled,
}

/// A version with all its data.
pub(crate) type Whole = (Version, u64, UnixMs, BTreeMap<SpiderName, String>);

/// A version in stored form.
#[derive(Deserialize)]
struct Manifest {
    number: u64,
    added: u64,
    spiders: BTreeMap<SpiderName, FileHash>,
}

impl RedisSpiderStore {
    /// Creates the store on this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis, scripts: VersionScripts::new(Clock::SERVER), journal: Journaled::default() }
    }

    /// Also writes every change to the journal.
    #[must_use]
    pub(crate) fn with_journal(self, journal: Arc<RedisJournal>) -> Self {
        Self { journal: Journaled::by(journal), ..self }
    }

    /// Returns all versions of a project, with their texts.
    pub(crate) async fn whole(&self, project: &ProjectName) -> Result<Vec<Whole>> {
        let mut all = Vec::new();
        for (version, manifest) in self.manifests(project).await? {
            let (number, added) = (manifest.number, UnixMs(manifest.added));
            // A version that is removed in between is left out.
            if let Some(files) = self.files(project, manifest).await? {
                all.push((version, number, added, files));
            }
        }
        Ok(all)
    }

    /// Returns the texts of a version; `None` if one is missing.
    async fn files(
        &self,
        project: &ProjectName,
        manifest: Manifest,
    ) -> Result<Option<BTreeMap<SpiderName, String>>> {
        let (names, hashes): (Vec<_>, Vec<_>) = manifest.spiders.into_iter().unzip();
        let mut read = redis::cmd("HMGET");
        read.arg(keys::project(project));
        for hash in hashes {
            read.arg(format!("t:{hash}"));
        }
        let texts: Vec<Option<String>> = self.redis.query(&read).await?;
        Ok(names.into_iter().zip(texts).map(|(name, text)| Some((name, text?))).collect())
    }

    /// Returns all versions of a project, the latest last.
    async fn manifests(&self, project: &ProjectName) -> Result<Vec<(Version, Manifest)>> {
        let key = keys::project(project);
        let mut fields: Vec<String> = self.redis.query(redis::cmd("HKEYS").arg(&key)).await?;
        fields.retain(|field| field.starts_with("v:"));
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let stored: Vec<Option<String>> =
            self.redis.query(redis::cmd("HMGET").arg(&key).arg(&fields)).await?;
        let mut all = Vec::with_capacity(fields.len());
        for (field, stored) in fields.iter().zip(stored) {
            // A version that was removed in between is left out.
            let Some(stored) = stored else { continue };
            let version = field.trim_start_matches("v:").parse().ok();
            let manifest: Option<Manifest> = serde_json::from_str(&stored).ok();
            all.push(version.zip(manifest).ok_or_else(|| unreadable(&key, field))?);
        }
        all.sort_by_key(|(_, manifest)| manifest.number);
        Ok(all)
    }
}

#[async_trait]
impl SpiderStore for RedisSpiderStore {
    async fn add(&self, project: &ProjectName, version: &Version, files: &SpiderFiles) -> Result<()> {
        self.journal.catch_up().await?;
        // The project first: one that is not listed has no schedules. If this process dies in between, a listed
        // project without versions counts as none.
        let () = self.redis.query(redis::cmd("SADD").arg(keys::PROJECTS).arg(project.as_str())).await?;
        let mut call = self.scripts.add.key(keys::project(project));
        call.arg(version.as_str()).arg(MAX_VERSIONS);
        for (name, text) in files.iter() {
            call.arg(name.as_str()).arg(FileHash::from_text(text).to_string()).arg(text);
        }
        let (number, added) = self.redis.run(&call).await?;
        let spiders = files.iter().map(|(name, text)| (name.clone(), text.to_owned())).collect();
        let (project, version) = (project.clone(), version.clone());
        let deployed = || Record::Deployed { project, version, number, added: UnixMs(added), spiders };
        self.journal.append(deployed).await
    }

    async fn projects(&self) -> Result<Vec<ProjectName>> {
        self.journal.catch_up().await?;
        let names: Vec<String> = self.redis.query(redis::cmd("SMEMBERS").arg(keys::PROJECTS)).await?;
        let names = names.iter().map(|name| name.parse().map_err(|_| unreadable(keys::PROJECTS, name)));
        let mut projects = names.collect::<Result<Vec<_>>>()?;
        projects.sort();
        Ok(projects)
    }

    async fn versions(&self, project: &ProjectName) -> Result<Vec<Deployed>> {
        self.journal.catch_up().await?;
        let deployed = |(version, manifest): (Version, Manifest)| Deployed {
            version,
            added: UnixMs(manifest.added),
            spiders: manifest.spiders.into_keys().collect(),
        };
        Ok(self.manifests(project).await?.into_iter().map(deployed).collect())
    }

    async fn revision(&self, project: &ProjectName) -> Result<u64> {
        let read = redis::cmd("HGET").arg(keys::project(project)).arg("number").to_owned();
        let number: Option<u64> = self.redis.query(&read).await?;
        Ok(number.unwrap_or_default())
    }

    async fn latest(&self, project: &ProjectName) -> Result<Option<(Version, SpiderFiles)>> {
        self.journal.catch_up().await?;
        let Some((version, manifest)) = self.manifests(project).await?.pop() else { return Ok(None) };
        // No text is missing, unless the version is removed just now: then the next call finds another.
        let files = self.files(project, manifest).await?.and_then(|files| SpiderFiles::new(files).ok());
        let files = files.ok_or_else(|| unreadable(&keys::project(project), version.as_str()))?;
        Ok(Some((version, files)))
    }

    async fn text(
        &self,
        project: &ProjectName,
        version: Option<&Version>,
        spider: &SpiderName,
    ) -> Result<Option<(Version, SpiderText)>> {
        self.journal.catch_up().await?;
        let mut all = self.manifests(project).await?;
        let found = match version {
            None => all.pop(),
            Some(version) => all.into_iter().find(|(name, _)| name == version),
        };
        let Some((version, manifest)) = found else { return Ok(None) };
        let Some(hash) = manifest.spiders.get(spider) else { return Ok(None) };
        let read = redis::cmd("HGET").arg(keys::project(project)).arg(format!("t:{hash}")).to_owned();
        let text: Option<String> = self.redis.query(&read).await?;
        Ok(text.map(|text| (version, text.into())))
    }

    async fn remove(&self, project: &ProjectName, version: Option<&Version>) -> Result<bool> {
        self.journal.catch_up().await?;
        let mut call = self.scripts.remove.key(keys::project(project));
        if let Some(version) = version {
            call.arg(version.as_str());
        }
        let (were_there, left, number): (bool, usize, u64) = self.redis.run(&call).await?;
        if left == 0 {
            let () = self.redis.query(redis::cmd("SREM").arg(keys::PROJECTS).arg(project.as_str())).await?;
        }
        // Written even if the version was not there: an earlier call may have removed it and reported a failure.
        let (project, version) = (project.clone(), version.cloned());
        self.journal.append(|| Record::Removed { project, version, number }).await?;
        Ok(were_there)
    }
}

fn unreadable(key: &str, field: &str) -> Error {
    let message = format!("redis: {field} of {key} is not what trawl writes: set it right, or remove it");
    Error::new(ErrorKind::Corrupt, message)
}
