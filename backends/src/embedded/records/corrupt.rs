//! Stored records that cannot be read: each is removed and named in the log, and everything else goes on.

use rusqlite::Connection;
use tracing::error;
use trawl_common::frontier::dead_letter::DeadLetterEntry;
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::frontier::{End, Key};
use trawl_common::ports::{Claim, Error, Finish};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use crate::embedded::crawls;
use crate::embedded::crawls::failures;
use crate::embedded::crawls::stats_delta::StatsDeltas;
use crate::embedded::records::address::Address;
use crate::embedded::records::{self, Unreadable};
use crate::embedded::settle::ending::{end, end_if_complete};
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;
use crate::notes;

/// Maximum length of a listed text, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// Ends the URL of a record that cannot be read: it fails as `corrupt`, and becomes a dead letter. A text that is
/// no URL is listed with the other invalid texts.
pub(crate) fn quarantine(db: &Connection, memory: &mut Memory, record: &Unreadable) -> Result<()> {
    let Unreadable { id, crawl, url, error } = record;
    if !records::exists(db, *id)? {
        return Ok(());
    }
    let crawl = crawls::at(db, *crawl)?;
    let corrupt = End::new(Terminal::Failed, Some(Reason::Corrupt.as_str()));
    match Key::recorded(url) {
        Ok(key) => {
            let claim = Claim { crawl: crawl.crawl.clone(), key };
            let address = Address::new(&claim.crawl, claim.key.as_str());
            let finish = Finish { note: Some(note(error)), ..Finish::new(claim, Terminal::Failed) };
            end(db, memory, (&address, &finish), corrupt, (crawl.key, *id))?;
        }
        Err(_) => {
            records::delete(db, *id)?;
            memory.forget(*id);
            failures::add_invalid(db, crawl.key, &printable(url, MAX_TEXT), &note(error))?;
        }
    }
    let mut deltas = StatsDeltas::default();
    deltas.ended(crawl.key, url, corrupt, 0);
    deltas.write(db)?;
    end_if_complete(db, memory, crawl.key)?;
    error!(crawl = %crawl.crawl.id, url, %error, "a record cannot be read: its URL counts as failed");
    Ok(())
}

fn note(error: &Error) -> DeadLetterEntry {
    notes::unreadable(&format!("its record cannot be read: {error}"), UnixMs::now())
}
