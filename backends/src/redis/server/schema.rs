//! The version of the data in Redis: a program that does not understand newer data must leave it alone.
//!
//! It is `1`, or `1.3`: the major version, and the newest format ([`FORMAT`]) of the data, if that is not the
//! first. A program starts on any format of its major version: data that it cannot read is left to newer ones.

use std::fmt;
use std::str::FromStr;

use redis::Value;
use tracing::info;
use trawl_common::format::FORMAT;
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::redis::server::full;
use crate::redis::{Link, failed, keys};

/// The version that this program writes. The major version is raised by a change that older programs must not meet
/// at all.
pub(crate) const OWN: Schema = Schema { major: 1, format: FORMAT };

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Schema {
    major: u64,
    format: u64,
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The form that programs wrote before there were formats.
            Self { major, format: 1 } => write!(f, "{major}"),
            Self { major, format } => write!(f, "{major}.{format}"),
        }
    }
}

impl FromStr for Schema {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let (major, format) = text.split_once('.').unwrap_or((text, "1"));
        Ok(Self { major: major.parse()?, format: format.parse()? })
    }
}

/// Fails with `Refused` if Redis holds data of a newer major version. Data that older programs left is marked with
/// this version, which can read it.
pub async fn check_schema(link: &Link) -> Result<()> {
    let mut set = redis::cmd("SET");
    let own = OWN.to_string();
    let _: Value = full::anyway(link, set.arg(keys::SCHEMA).arg(&own).arg("NX")).await.map_err(failed)?;
    let mut get = redis::cmd("GET");
    let kept: String = get.arg(keys::SCHEMA).query_async(&mut link.clone()).await.map_err(failed)?;
    match kept.parse::<Schema>() {
        Ok(older) if older < OWN => {
            let mut set = redis::cmd("SET");
            let _: Value = full::anyway(link, set.arg(keys::SCHEMA).arg(own)).await.map_err(failed)?;
            Ok(())
        }
        Ok(OWN) => Ok(()),
        Ok(newer) if newer.major == OWN.major => {
            info!(schema = kept, "newer programs work on this redis: what only they read is left to them");
            Ok(())
        }
        Ok(_) => {
            let message = format!(
                "redis holds data of schema version {kept}, and this program knows {OWN}: update trawl on this machine, or \
                 give it a redis of its own (redis.url)"
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
