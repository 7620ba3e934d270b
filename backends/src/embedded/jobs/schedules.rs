//! The state of cron schedules in the state file: one row each, without an instant while it is paused.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use trawl_common::names::SpiderRef;
use trawl_common::ports::{self, ScheduleState, Schedules};
use trawl_common::time::UnixMs;

use crate::embedded::store::Store;
use crate::embedded::store::error::{Result, unless_corrupt};
use crate::embedded::store::fields::{Fields, sql_ms};

/// The schedules of one state file.
pub(crate) struct EmbeddedSchedules(pub(crate) Arc<Store>);

impl EmbeddedSchedules {
    async fn change(&self, sql: &'static str, spider: &SpiderRef, at: Option<UnixMs>) -> ports::Result<()> {
        let spider = spider.clone();
        let change = move |db: &Connection| {
            db.prepare_cached(sql)?.execute(params![spider.to_string(), at.map(sql_ms)])?;
            Ok(())
        };
        self.0.call(move |db, _| change(db)).await
    }
}

#[async_trait]
impl Schedules for EmbeddedSchedules {
    async fn list(&self) -> ports::Result<BTreeMap<SpiderRef, ScheduleState>> {
        self.0.call(|db, _| list(db)).await
    }

    async fn note(&self, spider: &SpiderRef, until: UnixMs) -> ports::Result<()> {
        const NOTE: &str = "INSERT INTO schedules (spider, until) VALUES (?1, ?2)
             ON CONFLICT (spider) DO UPDATE SET until = max(until, excluded.until)";
        self.change(NOTE, spider, Some(until)).await
    }

    async fn pause(&self, spider: &SpiderRef) -> ports::Result<()> {
        const PAUSE: &str = "INSERT INTO schedules (spider, until) VALUES (?1, ?2)
             ON CONFLICT (spider) DO UPDATE SET until = excluded.until";
        self.change(PAUSE, spider, None).await
    }

    async fn resume(&self, spider: &SpiderRef, now: UnixMs) -> ports::Result<()> {
        const RESUME: &str = "UPDATE schedules SET until = ?2 WHERE spider = ?1 AND until IS NULL";
        self.change(RESUME, spider, Some(now)).await
    }
}

fn list(db: &Connection) -> Result<BTreeMap<SpiderRef, ScheduleState>> {
    let mut select = db.prepare_cached("SELECT spider, until FROM schedules")?;
    let states = select.query_and_then([], |row| unless_corrupt(read(row)))?;
    states.filter_map(Result::transpose).collect()
}

fn read(row: &Row<'_>) -> Result<(SpiderRef, ScheduleState)> {
    let fields = Fields::new(row, "schedule", "spider");
    let state = fields.optional_instant("until")?.map_or(ScheduleState::Paused, ScheduleState::Done);
    Ok((fields.text("spider")?, state))
}
