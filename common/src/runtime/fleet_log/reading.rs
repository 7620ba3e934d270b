//! Reading the entries that pass a filter from the log.

use crate::logs::LogFilter;
use crate::ports::{LogLine, LogPart, LogPlace, Logs, Result};

/// Number of entries read at a time.
const READ_BATCH: usize = 500;

/// Maximum number of entries examined in one call, whether they pass or not.
const MAX_EXAMINED: usize = 20_000;

/// Entries that pass a filter, with the positions around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The entries, the last first.
    pub lines: Vec<LogLine>,
    /// The position from which to read older ones; `None` if there are none.
    pub older: Option<LogPlace>,
    /// The position after the last entry, whether that passes or not: following the log continues there.
    pub end: LogPlace,
}

/// Returns at most `most` passing entries before a position, the last first. A page may have fewer although older
/// ones follow.
pub async fn newest(logs: &dyn Logs, filter: &LogFilter, before: LogPlace, most: usize) -> Result<LogPage> {
    let (mut lines, mut place, mut end) = (Vec::<LogLine>::new(), before, None);
    for _ in 0..MAX_EXAMINED.div_ceil(READ_BATCH) {
        let part = logs.before(place, READ_BATCH).await?;
        end = end.or(part.lines.first().map(|line| line.place));
        let has_older = part.has_more;
        place = part.next;
        for line in part.lines.into_iter().filter(|line| filter.takes(&line.entry)) {
            if lines.len() == most {
                let older = Some(lines.last().map_or(before, |line| line.place));
                return Ok(LogPage { lines, older, end: end.unwrap_or(LogPlace::BEGIN) });
            }
            lines.push(line);
        }
        if !has_older {
            return Ok(LogPage { lines, older: None, end: end.unwrap_or(LogPlace::BEGIN) });
        }
    }
    Ok(LogPage { lines, older: Some(place), end: end.unwrap_or(LogPlace::BEGIN) })
}

/// Returns the passing entries appended after a position, in order, and the position from which to continue. If
/// the log grew fast meanwhile, the rest comes with the next call.
pub async fn newer(logs: &dyn Logs, filter: &LogFilter, after: LogPlace) -> Result<LogPart> {
    let LogPart { mut lines, next, has_more } = logs.after(after, READ_BATCH).await?;
    lines.retain(|line| filter.takes(&line.entry));
    Ok(LogPart { lines, next, has_more })
}
