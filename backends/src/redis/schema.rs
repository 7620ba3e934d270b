//! The version of what is kept in Redis: a program that does not know what newer ones write must leave it alone.

use redis::Value;
use trawl_common::ports::{Error, ErrorKind, Result};

use super::{Link, failed, full, keys};

/// What this program writes. It goes up with every change that the program before would misread.
pub(super) const VERSION: u64 = 1;

/// Fails with `Refused` if Redis holds data of a newer program. What older ones left is marked as of this one, which reads it.
pub async fn check_schema(link: &Link) -> Result<()> {
    let mut set = redis::cmd("SET");
    let _: Value = full::anyway(link, set.arg(keys::SCHEMA).arg(VERSION).arg("NX")).await.map_err(failed)?;
    let mut get = redis::cmd("GET");
    let kept: String = get.arg(keys::SCHEMA).query_async(&mut link.clone()).await.map_err(failed)?;
    match kept.parse::<u64>() {
        Ok(VERSION) => Ok(()),
        Ok(older) if older < VERSION => {
            let mut set = redis::cmd("SET");
            let _: Value = full::anyway(link, set.arg(keys::SCHEMA).arg(VERSION)).await.map_err(failed)?;
            Ok(())
        }
        Ok(newer) => {
            let message = format!(
                "redis holds data of schema version {newer}, and this program knows {VERSION}: update trawl on this \
                 machine, or give it a redis of its own (redis.url)"
            );
            Err(Error::new(ErrorKind::Refused, message))
        }
        Err(_) => {
            let message = format!(
                "redis: the key {} is `{kept}`, which is no version: who else uses it?",
                keys::SCHEMA
            );
            Err(Error::new(ErrorKind::Refused, message))
        }
    }
}
