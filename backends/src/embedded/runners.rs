//! Runners in the state file: a row each, with its access as JSON.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::names::{ProjectName, RunnerName};
use trawl_common::ports::{self, Access, Error, ErrorKind, KeyDigest, MAX_RUNNERS, Runner, Runners};
use trawl_common::time::UnixMs;

use crate::embedded::store::Store;
use crate::embedded::store::error::{Result, unless_corrupt};
use crate::embedded::store::fields::{Fields, sql_ms};

/// The runners of one state file.
pub(super) struct EmbeddedRunners(pub(super) Arc<Store>);

const COLUMNS: &str = "SELECT name, key, since, asked, access FROM runners";

#[async_trait]
impl Runners for EmbeddedRunners {
    async fn ask(&self, name: &RunnerName, key: &KeyDigest) -> ports::Result<Runner> {
        let (name, key) = (name.clone(), *key);
        self.0.call(move |db, _| ask(db, &name, key, UnixMs::now())).await
    }

    async fn runner(&self, name: &RunnerName) -> ports::Result<Option<Runner>> {
        let name = name.clone();
        self.0.call(move |db, _| find(db, &name)).await
    }

    async fn runners(&self) -> ports::Result<Vec<Runner>> {
        self.0.call(|db, _| all(db)).await
    }

    async fn allow(&self, name: &RunnerName, project: &ProjectName, access: Access) -> ports::Result<bool> {
        let (name, project) = (name.clone(), project.clone());
        self.0
            .call(move |db, _| {
                let Some(mut runner) = find(db, &name)? else { return Ok(false) };
                runner.access.insert(project, access);
                write(db, &runner)?;
                Ok(true)
            })
            .await
    }

    async fn revoke(&self, name: &RunnerName, project: Option<&ProjectName>) -> ports::Result<bool> {
        let (name, project) = (name.clone(), project.cloned());
        self.0
            .call(move |db, _| {
                let Some(mut runner) = find(db, &name)? else { return Ok(false) };
                let before = runner.access.len();
                runner.access.retain(|other, _| project.as_ref().is_some_and(|project| project != other));
                write(db, &runner)?;
                Ok(runner.access.len() < before)
            })
            .await
    }

    async fn forget(&self, name: &RunnerName) -> ports::Result<bool> {
        let name = name.clone();
        self.0.call(move |db, _| forget(db, &name)).await
    }
}

fn ask(db: &Connection, name: &RunnerName, key: KeyDigest, now: UnixMs) -> Result<Runner> {
    let runner = match find(db, name)? {
        Some(known) => Runner { asked: now, ..known },
        None => {
            make_room(db, now)?;
            Runner { name: name.clone(), key, since: now, asked: now, access: Default::default() }
        }
    };
    write(db, &runner)?;
    Ok(runner)
}

/// Makes room for another runner, if there is none.
fn make_room(db: &Connection, now: UnixMs) -> Result<()> {
    let known = all(db)?;
    if known.len() < MAX_RUNNERS {
        return Ok(());
    }
    let old: Vec<_> = known.iter().filter(|runner| runner.is_forgettable(now)).collect();
    if old.is_empty() {
        let text =
            format!("knows {MAX_RUNNERS} runners: an operator has to forget some (`trawl runner forget`)");
        return Err(Error::new(ErrorKind::Refused, format_args!("the state file {text}")).into());
    }
    old.into_iter().try_for_each(|runner| forget(db, &runner.name).map(drop))
}

fn forget(db: &Connection, name: &RunnerName) -> Result<bool> {
    let removed = db.prepare_cached("DELETE FROM runners WHERE name = ?1")?.execute([name.as_str()])?;
    Ok(removed > 0)
}

fn write(db: &Connection, Runner { name, key, since, asked, access }: &Runner) -> Result<()> {
    let access = serde_json::to_string(access).expect("names are JSON");
    db.prepare_cached(
        "INSERT OR REPLACE INTO runners (name, key, since, asked, access) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![name.as_str(), key.to_string(), sql_ms(*since), sql_ms(*asked), access])?;
    Ok(())
}

fn find(db: &Connection, name: &RunnerName) -> Result<Option<Runner>> {
    let mut select = db.prepare_cached(&format!("{COLUMNS} WHERE name = ?1"))?;
    select.query_row([name.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

/// Returns all runners that can be read.
fn all(db: &Connection) -> Result<Vec<Runner>> {
    let mut select = db.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
    let runners = select.query_and_then([], |row| unless_corrupt(read(row)))?;
    runners.filter_map(Result::transpose).collect()
}

fn read(row: &Row<'_>) -> Result<Runner> {
    let fields = Fields::new(row, "runner", "name");
    let access: String = fields.text("access")?;
    Ok(Runner {
        name: fields.text("name")?,
        key: fields.text("key")?,
        since: fields.instant("since")?,
        asked: fields.instant("asked")?,
        access: serde_json::from_str(&access).map_err(|_| fields.unreadable("access"))?,
    })
}
