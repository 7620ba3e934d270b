//! The places of a crawl's URLs, for people.

use rusqlite::Connection;
use trawl_common::frontier::State;
use trawl_common::ports::Places;
use trawl_common::time::UnixMs;

use crate::embedded::records::holdings::Holdings;
use crate::embedded::store::error::Result;

/// Maximum number of records examined.
const MAX_EXAMINED: usize = 1000;

/// Returns the places of the URLs of the crawl in row `crawl`.
pub(crate) fn read(db: &Connection, holdings: &Holdings, crawl: i64, now: UnixMs) -> Result<Places> {
    let mut select = db.prepare_cached("SELECT id, due, attempts FROM records WHERE crawl = ?1 LIMIT ?2")?;
    let mut rows = select.query([crawl, MAX_EXAMINED as i64])?;
    let (mut places, mut looked) = (Places::default(), 0);
    while let Some(row) = rows.next()? {
        looked += 1;
        let due: Option<i64> = row.get(1)?;
        let due = due.map(|due| UnixMs(due.max(0).cast_unsigned())).filter(|due| *due > now);
        match (holdings.state(row.get(0)?, now), due) {
            (Some(State::Held { by, .. }), _) => *places.held.entry(by).or_default() += 1,
            (_, Some(due)) => {
                places.parked += 1;
                places.retried += u64::from(row.get::<_, i64>(2)? > 0);
                places.next = Some(places.next.map_or(due, |next| next.min(due)));
            }
            (_, None) => places.queued += 1,
        }
    }
    places.is_all = looked < MAX_EXAMINED;
    Ok(places)
}
