//! Reading what fits a filter out of the log.

use super::LogFilter;
use crate::ports::{LogLine, LogPart, LogPlace, Logs, Result};

/// How many entries are read at a time.
const READ: usize = 500;

/// So many entries are looked at in one call, whether they fit or not.
const LOOKED_AT: usize = 20_000;

/// Entries that fit, with the places around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The last ones first.
    pub lines: Vec<LogLine>,
    /// Where older ones are read from; `None` where there are none.
    pub older: Option<LogPlace>,
    /// Behind all that there was, whether it fits or not: who follows the log begins there.
    pub end: LogPlace,
}

/// At most `most` entries before a place that fit, the last ones first. A page may have fewer although older ones follow.
pub async fn newest(logs: &dyn Logs, filter: &LogFilter, before: LogPlace, most: usize) -> Result<LogPage> {
    let (mut lines, mut place, mut end) = (Vec::<LogLine>::new(), before, None);
    for _ in 0..LOOKED_AT.div_ceil(READ) {
        let part = logs.before(place, READ).await?;
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

/// What was appended after a place and fits, the first first, and where to go on. What is left of a log that grew fast meanwhile
/// comes with the next call.
pub async fn newer(logs: &dyn Logs, filter: &LogFilter, after: LogPlace) -> Result<LogPart> {
    let LogPart { mut lines, next, has_more } = logs.after(after, READ).await?;
    lines.retain(|line| filter.takes(&line.entry));
    Ok(LogPart { lines, next, has_more })
}
