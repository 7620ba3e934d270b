//! What is known of one URL or task, for people to see.

use std::collections::HashMap;

use trawl_common::frontier::{Key, Record, State, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use super::RedisRecords;
use super::corrupt::shown;
use super::fields::Fields;
use super::keys::CrawlKeys;
use super::seen::{entry, seen_keys};

impl RedisRecords {
    pub(super) async fn read_url_state(&self, crawl: &CrawlRef, key: &Key) -> Result<UrlState> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.url_state.prepare_invoke();
        call.key(&keys.crawl).key(&keys.pending).key(&keys.outbox).key(&keys.begun);
        seen_keys(&mut call, &keys);
        call.arg(crawl.id.as_str());
        entry(&mut call, key.as_str());
        let told: HashMap<String, String> = self.redis.run(&call).await?;
        state_of(&Fields::new(keys.pending, told))
    }
}

fn state_of(told: &Fields) -> Result<UrlState> {
    match told.read::<u8>("seen")? {
        Some(0) => Ok(UrlState::Unseen),
        Some(_) => Ok(UrlState::Ended),
        None => record_of(told).map(UrlState::Pending),
    }
}

fn record_of(told: &Fields) -> Result<Record> {
    if let Some(text) = told.read::<String>("record")? {
        return Err(told.nonsense(&format_args!("a record `{}`", shown(text.as_bytes()))));
    }
    let instant = |name| -> Result<Option<UnixMs>> { Ok(told.read(name)?.map(UnixMs)) };
    let since = UnixMs(told.required("since")?);
    let state = match told.required("state")? {
        'n' => State::New { since },
        'q' => State::Queued { since },
        'p' => State::Parked { until: since, unconfirmed: instant("unconfirmed")? },
        started => State::Held { by: told.required("holder")?, since, has_started: started == 'f' },
    };
    Ok(Record {
        state,
        lane: told.required("lane")?,
        deadline: instant("deadline")?,
        attempts: told.required("attempts")?,
        starts: told.required("starts")?,
        has_begun: told.required::<u8>("begun")? == 1,
    })
}
