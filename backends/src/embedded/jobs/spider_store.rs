//! The versions of projects in the state file: one row each.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{self, Deployed, MAX_VERSIONS, SpiderStore};
use trawl_common::spider::{SpiderFiles, SpiderText, Version};
use trawl_common::time::UnixMs;

use crate::embedded::store::Store;
use crate::embedded::store::error::{Fault, Result};
use crate::embedded::store::fields::{Fields, sql_ms};

/// The versions in one state file.
pub(crate) struct EmbeddedSpiderStore {
    store: Arc<Store>,
}

impl EmbeddedSpiderStore {
    /// Creates the versions in `store`.
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }
}

#[async_trait]
impl SpiderStore for EmbeddedSpiderStore {
    async fn add(&self, project: &ProjectName, version: &Version, files: &SpiderFiles) -> ports::Result<()> {
        let (project, version) = (project.clone(), version.clone());
        let files: BTreeMap<_, _> =
            files.iter().map(|(name, text)| (name.clone(), text.to_owned())).collect();
        self.store.call(move |db, _| add(db, &project, &version, &files, UnixMs::now())).await
    }

    async fn projects(&self) -> ports::Result<Vec<ProjectName>> {
        self.store.call(|db, _| projects(db)).await
    }

    async fn versions(&self, project: &ProjectName) -> ports::Result<Vec<Deployed>> {
        let project = project.clone();
        self.store.call(move |db, _| versions(db, &project)).await
    }

    async fn revision(&self, project: &ProjectName) -> ports::Result<u64> {
        let project = project.clone();
        self.store.call(move |db, _| revision(db, &project)).await
    }

    async fn latest(&self, project: &ProjectName) -> ports::Result<Option<(Version, SpiderFiles)>> {
        let project = project.clone();
        self.store.call(move |db, _| latest(db, &project)).await
    }

    async fn text(
        &self,
        project: &ProjectName,
        version: Option<&Version>,
        spider: &SpiderName,
    ) -> ports::Result<Option<(Version, SpiderText)>> {
        let (project, version, spider) = (project.clone(), version.cloned(), spider.clone());
        self.store.call(move |db, _| text(db, &project, version.as_ref(), &spider)).await
    }

    async fn remove(&self, project: &ProjectName, version: Option<&Version>) -> ports::Result<bool> {
        let (project, version) = (project.clone(), version.map(Version::to_string));
        const REMOVE: &str = "DELETE FROM versions WHERE project = ?1 AND (?2 IS NULL OR version = ?2)";
        let removed = move |db: &Connection| -> Result<usize> {
            Ok(db.prepare_cached(REMOVE)?.execute(params![project.as_str(), version])?)
        };
        Ok(self.store.call(move |db, _| removed(db)).await? > 0)
    }
}

fn add(
    db: &Connection,
    project: &ProjectName,
    version: &Version,
    files: &BTreeMap<SpiderName, String>,
    now: UnixMs,
) -> Result<()> {
    // Names and texts can always be serialised.
    let spiders = serde_json::to_string(files).map_err(Fault::corrupt)?;
    // A replaced version gets a new number: it is the latest now.
    db.prepare_cached(
        "INSERT OR REPLACE INTO versions (project, version, added, spiders) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![project.as_str(), version.as_str(), sql_ms(now), spiders])?;
    db.prepare_cached(
        "DELETE FROM versions WHERE project = ?1 AND number NOT IN
           (SELECT number FROM versions WHERE project = ?1 ORDER BY number DESC LIMIT ?2)",
    )?
    .execute(params![project.as_str(), MAX_VERSIONS as i64])?;
    Ok(())
}

fn projects(db: &Connection) -> Result<Vec<ProjectName>> {
    let mut select = db.prepare_cached("SELECT DISTINCT project FROM versions ORDER BY project")?;
    let projects =
        select.query_map([], |row| Ok(Fields::new(row, "a version", "project").text("project")))?;
    projects.map(|project| project?).collect()
}

fn versions(db: &Connection, project: &ProjectName) -> Result<Vec<Deployed>> {
    let mut select = db.prepare_cached("SELECT * FROM versions WHERE project = ?1 ORDER BY number")?;
    let versions = select.query_map([project.as_str()], |row| Ok(read(row)))?;
    let deployed =
        |(version, added, files): Stored| Deployed { version, added, spiders: files.into_keys().collect() };
    versions.map(|version| version?.map(deployed)).collect()
}

/// No number is used twice.
fn revision(db: &Connection, project: &ProjectName) -> Result<u64> {
    let mut select = db.prepare_cached("SELECT max(number) FROM versions WHERE project = ?1")?;
    let number: Option<i64> = select.query_row([project.as_str()], |row| row.get(0))?;
    Ok(number.unwrap_or_default().cast_unsigned())
}

fn latest(db: &Connection, project: &ProjectName) -> Result<Option<(Version, SpiderFiles)>> {
    let Some((version, _, files)) = one(db, project, None)? else { return Ok(None) };
    Ok(Some((version, SpiderFiles::new(files).map_err(Fault::corrupt)?)))
}

fn text(
    db: &Connection,
    project: &ProjectName,
    version: Option<&Version>,
    spider: &SpiderName,
) -> Result<Option<(Version, SpiderText)>> {
    let found = one(db, project, version)?;
    Ok(found.and_then(|(version, _, mut files)| Some((version, files.remove(spider)?.into()))))
}

/// Returns a version, or the latest.
fn one(db: &Connection, project: &ProjectName, version: Option<&Version>) -> Result<Option<Stored>> {
    let mut select = db.prepare_cached(
        "SELECT * FROM versions WHERE project = ?1 AND (?2 IS NULL OR version = ?2) ORDER BY number DESC LIMIT 1",
    )?;
    let parameters = params![project.as_str(), version.map(Version::as_str)];
    select.query_row(parameters, |row| Ok(read(row))).optional()?.transpose()
}

type Stored = (Version, UnixMs, BTreeMap<SpiderName, String>);

fn read(row: &Row<'_>) -> Result<Stored> {
    let fields = Fields::new(row, "version", "version");
    let files = row.get_ref("spiders")?.as_str().ok().and_then(|text| serde_json::from_str(text).ok());
    Ok((
        fields.text("version")?,
        fields.instant("added")?,
        files.ok_or_else(|| fields.unreadable("spiders"))?,
    ))
}
