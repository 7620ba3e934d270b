//! The headers of received messages.

use lapin::types::{AMQPValue, FieldTable};
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::trace::{TRACE_PARENT, TRACE_STATE, Trace};
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::priority::Priority;
use trawl_common::time::UnixMs;

/// Headers as anyone may have set them.
#[derive(Clone, Copy)]
pub(super) struct Headers<'a>(pub(super) &'a FieldTable);

impl<'a> Headers<'a> {
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let wrong = || format!("header {name}: not text");
        match self.0.inner().get(name) {
            None | Some(AMQPValue::Void) => Ok(None),
            Some(AMQPValue::LongString(text)) => {
                std::str::from_utf8(text.as_bytes()).map(Some).map_err(|_| wrong())
            }
            Some(AMQPValue::ShortString(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong()),
        }
    }

    /// Returns the crawl that the message is for.
    pub(super) fn crawl(&self) -> Result<CrawlRef, String> {
        let spider = self.parsed("spider")?.unwrap_or_default();
        Ok(match self.parsed::<CrawlId>("crawl")? {
            None => CrawlRef::adhoc_of(spider),
            Some(id) if id.is_adhoc() => CrawlRef::adhoc_of(spider),
            Some(id) => CrawlRef { id, spider },
        })
    }

    /// Returns the redirects so far.
    pub(super) fn hop(&self) -> Result<Option<Hop>, String> {
        let count = self.number("hops")?.unwrap_or(0).try_into().unwrap_or(u8::MAX);
        let hop = self.text("hop")?.map(|target| Hop::of_target(target, count));
        hop.transpose().map_err(|error| format!("header hop: {error}"))
    }

    /// Returns the trace of the URL. It is only a hint, so an unreadable one counts as none.
    pub(super) fn trace(&self) -> Option<Box<Trace>> {
        let parent = self.text(TRACE_PARENT).ok()??;
        let state = self.text(TRACE_STATE).ok().flatten();
        Trace::read(parent, state, UnixMs::now()).map(Box::new)
    }

    /// Returns whether its last queue dropped it because it was delivered and given back too often, not because of
    /// its age.
    pub(super) fn came_back_too_often(&self) -> bool {
        self.last_death("reason") == Some("delivery_limit")
    }

    /// Returns the queue that dropped it last.
    pub(super) fn last_queue(&self) -> Option<&'a str> {
        self.last_death("queue")
    }

    /// Returns a field of the broker's entry for the last drop, which is the first one. A message that waited on
    /// the ladder before has further entries.
    pub(super) fn last_death(&self, field: &str) -> Option<&'a str> {
        let Some(AMQPValue::FieldArray(deaths)) = self.0.inner().get("x-death") else { return None };
        let Some(AMQPValue::FieldTable(last)) = deaths.as_slice().first() else { return None };
        Headers(last).text(field).ok().flatten()
    }

    /// Returns the priority, from a number or its text.
    pub(super) fn priority(&self) -> Result<Option<Priority>, String> {
        let number = match self.0.inner().get("priority") {
            Some(AMQPValue::Double(number)) => *number,
            Some(AMQPValue::Float(number)) => f64::from(*number),
            Some(AMQPValue::LongLongInt(number)) => *number as f64,
            Some(AMQPValue::LongInt(number)) => f64::from(*number),
            Some(AMQPValue::ShortInt(number)) => f64::from(*number),
            Some(AMQPValue::ShortShortInt(number)) => f64::from(*number),
            _ => return self.parsed("priority"),
        };
        number.try_into().map(Some).map_err(|error| format!("header priority: {error}"))
    }

    pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, String> {
        let text = self.text(name)?;
        text.map(|text| text.parse().map_err(|error| format!("header {name}: {error}"))).transpose()
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let value = match self.0.inner().get(name) {
            None | Some(AMQPValue::Void) => return Ok(None),
            Some(AMQPValue::LongLongInt(value)) => *value,
            Some(AMQPValue::LongInt(value)) => i64::from(*value),
            Some(AMQPValue::LongUInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortUInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortShortInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortShortUInt(value)) => i64::from(*value),
            Some(AMQPValue::Timestamp(seconds)) => i64::try_from(*seconds).unwrap_or(-1).saturating_mul(1000),
            Some(_) => return Err(format!("header {name}: not a whole number")),
        };
        u64::try_from(value).map(Some).map_err(|_| format!("header {name}: below zero"))
    }
}
