//! Projects in the state file: a row each, and one for each spider that belongs to one.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{
    self, MAX_PROJECT_SPIDERS, MAX_PROJECTS, MAX_REPORTS, Projects, owned_by_another, too_many_projects,
    too_many_spiders,
};
use trawl_common::project::{Project, ProjectCode, SealedSecret, Source, VersionReport, Wanted};
use trawl_common::time::UnixMs;

use crate::embedded::store::Store;
use crate::embedded::store::error::Result;
use crate::embedded::store::fields::{Fields, sql_ms};

/// The projects of one state file.
pub(super) struct EmbeddedProjects(pub(super) Arc<Store>);

const COLUMNS: &str = "SELECT name, created, secret IS NOT NULL AS has_secret, source, wanted FROM projects";

#[async_trait]
impl Projects for EmbeddedProjects {
    async fn create(&self, name: &ProjectName) -> ports::Result<bool> {
        let name = name.clone();
        self.0.call(move |db, _| create(db, &name, UnixMs::now())).await
    }

    async fn project(&self, name: &ProjectName) -> ports::Result<Option<Project>> {
        let name = name.clone();
        self.0.call(move |db, _| find(db, &name)).await
    }

    async fn made(&self) -> ports::Result<Vec<Project>> {
        self.0.call(|db, _| all(db)).await
    }

    async fn add_spider(&self, name: &ProjectName, spider: &SpiderName) -> ports::Result<bool> {
        let (name, spider) = (name.clone(), spider.clone());
        self.0.call(move |db, _| add_spider(db, &name, &spider)).await
    }

    async fn remove_spider(&self, name: &ProjectName, spider: &SpiderName) -> ports::Result<bool> {
        let (name, spider) = (name.clone(), spider.clone());
        self.0
            .call(move |db, _| {
                let delete = "DELETE FROM project_spiders WHERE spider = ?1 AND project = ?2";
                Ok(db.prepare_cached(delete)?.execute([spider.as_str(), name.as_str()])? > 0)
            })
            .await
    }

    async fn code(&self, names: &[ProjectName]) -> ports::Result<Vec<Option<ProjectCode>>> {
        let names = names.to_vec();
        self.0.call(move |db, _| names.iter().map(|name| code(db, name)).collect()).await
    }

    async fn set_secret(&self, name: &ProjectName, secret: Option<&SealedSecret>) -> ports::Result<bool> {
        let (name, secret) = (name.clone(), secret.map(ToString::to_string));
        self.0.call(move |db, _| update(db, "secret = ?2", &name, secret)).await
    }

    async fn set_source(&self, name: &ProjectName, source: Option<&Source>) -> ports::Result<bool> {
        let (name, source) = (name.clone(), source.map(json));
        self.0
            .call(move |db, _| {
                forget_reports(db, &name)?;
                update(db, "source = ?2, wanted = NULL", &name, source)
            })
            .await
    }

    async fn want(&self, name: &ProjectName, wanted: &Wanted) -> ports::Result<bool> {
        let (name, wanted) = (name.clone(), wanted.clone());
        self.0
            .call(move |db, _| {
                if find(db, &name)?.is_some_and(|project| project.wanted.as_ref() != Some(&wanted)) {
                    forget_reports(db, &name)?;
                }
                update(db, "wanted = ?2", &name, Some(json(&wanted)))
            })
            .await
    }

    async fn note_version(&self, report: &VersionReport) -> ports::Result<()> {
        let report = report.clone();
        self.0.call(move |db, _| note_version(db, &report)).await
    }

    async fn reports(&self, name: &ProjectName) -> ports::Result<Vec<VersionReport>> {
        let name = name.clone();
        self.0.call(move |db, _| reports(db, &name)).await
    }

    async fn forget(&self, name: &ProjectName) -> ports::Result<bool> {
        let name = name.clone();
        self.0
            .call(move |db, _| {
                forget_reports(db, &name)?;
                let spiders = "DELETE FROM project_spiders WHERE project = ?1";
                db.prepare_cached(spiders)?.execute([name.as_str()])?;
                let project = "DELETE FROM projects WHERE name = ?1";
                Ok(db.prepare_cached(project)?.execute([name.as_str()])? > 0)
            })
            .await
    }

    async fn owners(&self, spiders: &[SpiderName]) -> ports::Result<Vec<Option<ProjectName>>> {
        let spiders = spiders.to_vec();
        self.0.call(move |db, _| spiders.iter().map(|spider| owner(db, spider)).collect()).await
    }
}

/// Changes a project. Returns whether there is one.
fn update(db: &Connection, set: &str, name: &ProjectName, value: Option<String>) -> Result<bool> {
    let update = format!("UPDATE projects SET {set} WHERE name = ?1");
    Ok(db.prepare_cached(&update)?.execute(params![name.as_str(), value])? > 0)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts are JSON")
}

fn create(db: &Connection, name: &ProjectName, now: UnixMs) -> Result<bool> {
    if find(db, name)?.is_some() {
        return Ok(false);
    }
    if count(db, "projects")? >= MAX_PROJECTS {
        return Err(too_many_projects().into());
    }
    let insert = "INSERT INTO projects (name, created) VALUES (?1, ?2)";
    db.prepare_cached(insert)?.execute(params![name.as_str(), sql_ms(now)])?;
    Ok(true)
}

fn add_spider(db: &Connection, name: &ProjectName, spider: &SpiderName) -> Result<bool> {
    if find(db, name)?.is_none() {
        return Ok(false);
    }
    match owner(db, spider)? {
        Some(owner) if owner == *name => return Ok(true),
        Some(owner) => return Err(owned_by_another(spider, &owner).into()),
        None => {}
    }
    if count(db, "project_spiders")? >= MAX_PROJECT_SPIDERS {
        return Err(too_many_spiders().into());
    }
    let insert = "INSERT INTO project_spiders (spider, project) VALUES (?1, ?2)";
    db.prepare_cached(insert)?.execute([spider.as_str(), name.as_str()])?;
    Ok(true)
}

fn count(db: &Connection, table: &str) -> Result<usize> {
    let mut select = db.prepare_cached(&format!("SELECT count(*) FROM {table}"))?;
    let count: u32 = select.query_row([], |row| row.get(0))?;
    Ok(count as usize)
}

fn owner(db: &Connection, spider: &SpiderName) -> Result<Option<ProjectName>> {
    let mut select = db.prepare_cached("SELECT spider, project FROM project_spiders WHERE spider = ?1")?;
    let read = |row: &Row<'_>| Ok(Fields::new(row, "project_spiders", "spider").text("project"));
    select.query_row([spider.as_str()], read).optional()?.transpose()
}

fn code(db: &Connection, name: &ProjectName) -> Result<Option<ProjectCode>> {
    let select = "SELECT name, created, secret, source, wanted FROM projects WHERE name = ?1";
    let mut select = db.prepare_cached(select)?;
    let read = |row: &Row<'_>| {
        let fields = Fields::new(row, "project", "name");
        let code = || {
            let secret: Option<String> = fields.optional_text("secret")?;
            Ok(ProjectCode {
                created: fields.instant("created")?,
                source: from_json(&fields, "source")?,
                wanted: from_json(&fields, "wanted")?,
                secret: secret.map(|sealed| sealed.parse()).transpose(),
            })
        };
        Ok(code())
    };
    select.query_row([name.as_str()], read).optional()?.transpose()
}

fn note_version(db: &Connection, report: &VersionReport) -> Result<()> {
    let VersionReport { project, wanted, machine, .. } = report;
    if find(db, project)?.is_none_or(|project| project.wanted.as_ref() != Some(wanted)) {
        return Ok(());
    }
    let mut others =
        db.prepare_cached("SELECT count(*) FROM version_reports WHERE project = ?1 AND machine != ?2")?;
    let others: u32 = others.query_row([project.as_str(), machine.as_str()], |row| row.get(0))?;
    if (others as usize) < MAX_REPORTS {
        let insert = "INSERT OR REPLACE INTO version_reports (project, machine, report) VALUES (?1, ?2, ?3)";
        db.prepare_cached(insert)?.execute([project.as_str(), machine.as_str(), &json(report)])?;
    }
    Ok(())
}

fn reports(db: &Connection, name: &ProjectName) -> Result<Vec<VersionReport>> {
    let select = "SELECT machine, report FROM version_reports WHERE project = ?1 ORDER BY machine";
    let mut select = db.prepare_cached(select)?;
    let mut rows = select.query([name.as_str()])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let fields = Fields::new(row, "report on a version", "machine");
        all.extend(from_json(&fields, "report")?);
    }
    Ok(all)
}

fn forget_reports(db: &Connection, name: &ProjectName) -> Result<()> {
    db.prepare_cached("DELETE FROM version_reports WHERE project = ?1")?.execute([name.as_str()])?;
    Ok(())
}

fn find(db: &Connection, name: &ProjectName) -> Result<Option<Project>> {
    let mut select = db.prepare_cached(&format!("{COLUMNS} WHERE name = ?1"))?;
    select.query_row([name.as_str()], |row| Ok(read(db, row))).optional()?.transpose()
}

fn all(db: &Connection) -> Result<Vec<Project>> {
    let mut select = db.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
    select.query_and_then([], |row| read(db, row))?.collect()
}

/// Returns the value of a column with JSON, if there is one.
fn from_json<T: DeserializeOwned>(fields: &Fields<'_, '_>, column: &str) -> Result<Option<T>> {
    let text: Option<String> = fields.optional_text(column)?;
    text.map(|text| serde_json::from_str(&text).map_err(|_| fields.unreadable(column))).transpose()
}

fn read(db: &Connection, row: &Row<'_>) -> Result<Project> {
    let fields = Fields::new(row, "project", "name");
    let name: ProjectName = fields.text("name")?;
    let mut select = db.prepare_cached("SELECT spider FROM project_spiders WHERE project = ?1")?;
    let spider = |row: &Row<'_>| Fields::new(row, "spider of a project", "spider").text("spider");
    Ok(Project {
        created: fields.instant("created")?,
        has_secret: fields.number::<u8>("has_secret")? != 0,
        spiders: select.query_and_then([name.as_str()], spider)?.collect::<Result<_>>()?,
        source: from_json(&fields, "source")?,
        wanted: from_json(&fields, "wanted")?,
        name,
    })
}
