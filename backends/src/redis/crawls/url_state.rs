//! The state of one URL or task, for people.

use std::collections::HashMap;

use trawl_common::frontier::{Key, Record, State, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::fields::Fields;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::corrupt::shown;
use crate::redis::seen::entry;

impl RedisRecords {
    pub(crate) async fn read_url_state(&self, crawl: &CrawlRef, key: &Key) -> Result<UrlState> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.url_state.on(&keys);
        call.arg(crawl.id.as_str());
        entry(&mut call, key.as_str());
        let fields: HashMap<String, String> = self.redis.run(&call).await?;
        state_of(&Fields::new(keys.pending, fields))
    }
}

fn state_of(fields: &Fields) -> Result<UrlState> {
    match fields.read::<u8>("seen")? {
        Some(0) => Ok(UrlState::Unseen),
        Some(_) => Ok(UrlState::Ended),
        None => record_of(fields).map(UrlState::Pending),
    }
}

fn record_of(fields: &Fields) -> Result<Record> {
    if fields.read::<String>("newer")?.is_some() {
        let text = "the URL's record is of a newer trawl: update trawl on this machine to see it";
        return Err(Error::new(ErrorKind::Refused, text));
    }
    if let Some(text) = fields.read::<String>("record")? {
        return Err(fields.nonsense(&format_args!("a record `{}`", shown(text.as_bytes()))));
    }
    let instant = |name| -> Result<Option<UnixMs>> { Ok(fields.read(name)?.map(UnixMs)) };
    let since = UnixMs(fields.required("since")?);
    let state = match fields.required("state")? {
        'n' => State::New { since },
        'q' => State::Queued { since },
        // Shown as queued to people: it waits for its crawl to be resumed.
        'p' if fields.read::<String>("holder")?.is_some() => State::Queued { since: UnixMs(0) },
        'p' => State::Parked { until: since, unconfirmed: instant("unconfirmed")?, in_pause: false },
        started => State::Held { by: fields.required("holder")?, since, has_started: started == 'f' },
    };
    Ok(Record {
        state,
        lane: fields.required("lane")?,
        deadline: instant("deadline")?,
        attempts: fields.required("attempts")?,
        starts: fields.required("starts")?,
        lapsed: Vec::new(),
        has_begun: fields.required::<u8>("begun")? == 1,
    })
}
