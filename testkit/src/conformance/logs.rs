//! The promises of the fleet's log: it keeps the last entries, in the order in which they were appended, for all
//! readers and followers.

use std::sync::Arc;

use trawl_common::fleet_log::{LogPage, newer, newest};
use trawl_common::logs::{LogEntry, LogFilter, LogLevel};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{LogPart, LogPlace, Logs, Result};
use trawl_common::settings::Log;
use trawl_common::text::is_harmful;
use trawl_common::time::UnixMs;

/// Number of entries that the log of a fixture keeps.
const KEEP: usize = 40;

/// Number of bytes of entries that it keeps.
const KEEP_BYTES: u64 = 200_000;

/// Returns the settings of a fixture's log.
pub fn settings() -> Log {
    let keep_bytes = serde_json::from_value(KEEP_BYTES.into()).expect("it is a size");
    Log { keep: KEEP, keep_bytes, ..trawl_common::settings::Settings::default().log }
}

/// Makes a test of each promise; the fixture returns a guard and an empty `Arc<dyn Logs>` with these [`settings`].
#[macro_export]
macro_rules! logs_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, logs:
            entries_come_as_they_were_appended_and_in_their_order
            a_log_is_read_in_parts_from_both_ends
            an_empty_log_has_no_entry_and_is_followed_from_its_beginning
            the_log_keeps_its_last_entries
            the_log_keeps_no_more_bytes_than_it_may
            each_of_two_followers_gets_each_entry_once
            a_log_that_was_begun_anew_is_followed_from_its_beginning
            what_fits_is_found_wherever_it_stands
            hostile_texts_are_kept_harmless_and_short
            entries_of_an_earlier_time_stand_where_they_were_appended
        }
    };
}

fn entry(text: &str) -> LogEntry {
    LogEntry::new(&"w-1".parse().expect("it is a name"), LogLevel::Info, text)
}

fn entries(numbers: std::ops::Range<usize>) -> Vec<LogEntry> {
    numbers.map(|number| entry(&number.to_string())).collect()
}

fn texts(part: &LogPart) -> Vec<String> {
    part.lines.iter().map(|line| line.entry.message.to_string()).collect()
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

/// Entries are read as they were appended, to the last field, and in that order.
pub async fn entries_come_as_they_were_appended_and_in_their_order(logs: &Arc<dyn Logs>) -> Result<()> {
    let crawl = CrawlRef { id: "c1".parse().expect("a name"), spider: "docs".parse().expect("a name") };
    let whole = entry("it broke\n\tat main\u{e4}")
        .in_crawl(&crawl)
        .with_host("a.example")
        .about("http://a.example/%s?{}'\"")
        .of_class("http");
    let all = [whole, entry("two"), entry("")];
    logs.append(&all).await?;
    let part = logs.after(LogPlace::BEGIN, 10).await?;
    assert_eq!(part.lines.iter().map(|line| line.entry.clone()).collect::<Vec<_>>(), all);
    assert!(part.lines.is_sorted_by_key(|line| line.place) && !part.has_more);
    let mut back = logs.before(LogPlace::END, 10).await?;
    back.lines.reverse();
    assert_eq!((back.lines, back.has_more), (part.lines, false));
    Ok(())
}

/// A log is read in parts from both ends; each part goes on where the one before it ended.
pub async fn a_log_is_read_in_parts_from_both_ends(logs: &Arc<dyn Logs>) -> Result<()> {
    logs.append(&entries(0..7)).await?;
    let first = logs.after(LogPlace::BEGIN, 3).await?;
    let second = logs.after(first.next, 3).await?;
    let third = logs.after(second.next, 3).await?;
    assert_eq!([&first, &second, &third].map(texts), [numbers(0..3), numbers(3..6), numbers(6..7)]);
    assert_eq!([first.has_more, second.has_more, third.has_more], [true, true, false]);
    let end = logs.after(third.next, 3).await?;
    assert_eq!((end.lines.len(), end.next, end.has_more), (0, third.next, false));
    let first = logs.before(LogPlace::END, 4).await?;
    let second = logs.before(first.next, 4).await?;
    assert_eq!(
        [texts(&first), texts(&second)],
        [["6", "5", "4", "3"].map(str::to_owned).to_vec(), ["2", "1", "0"].map(str::to_owned).to_vec()]
    );
    assert_eq!([first.has_more, second.has_more], [true, false]);
    assert!(logs.before(second.next, 4).await?.lines.is_empty());
    Ok(())
}

/// An empty log has no entry, even after an append of nothing, and can be followed from its beginning.
pub async fn an_empty_log_has_no_entry_and_is_followed_from_its_beginning(
    logs: &Arc<dyn Logs>,
) -> Result<()> {
    logs.append(&[]).await?;
    let nothing = |part: LogPart| (part.lines.len(), part.has_more);
    assert_eq!(nothing(logs.before(LogPlace::END, 10).await?), (0, false));
    assert_eq!(nothing(logs.before(LogPlace::BEGIN, 10).await?), (0, false));
    assert_eq!(nothing(logs.after(LogPlace::END, 10).await?), (0, false));
    let LogPage { end, older, .. } = newest(&**logs, &LogFilter::default(), LogPlace::END, 10).await?;
    assert_eq!(older, None);
    logs.append(&entries(0..1)).await?;
    assert_eq!(texts(&logs.after(end, 10).await?), ["0"]);
    Ok(())
}

/// The log keeps its last entries, however many are appended at once.
pub async fn the_log_keeps_its_last_entries(logs: &Arc<dyn Logs>) -> Result<()> {
    for batch in entries(0..KEEP * 2 + 5).chunks(7) {
        logs.append(batch).await?;
    }
    let all = logs.after(LogPlace::BEGIN, KEEP * 3).await?;
    assert_eq!(texts(&all), numbers(KEEP + 5..KEEP * 2 + 5));
    logs.append(&entries(0..1_000)).await?;
    let all = logs.after(LogPlace::BEGIN, KEEP * 3).await?;
    assert_eq!(texts(&all), numbers(1_000 - KEEP..1_000));
    Ok(())
}

/// The log keeps no more bytes than its limit, whatever the sizes of entries.
pub async fn the_log_keeps_no_more_bytes_than_it_may(logs: &Arc<dyn Logs>) -> Result<()> {
    for size in [60_000, 10, 60_000, 60_000, 100, 50_000, 1_000_000, 60_000, 60_000, 7] {
        logs.append(&[entry(&"x".repeat(size))]).await?;
        let part = logs.after(LogPlace::BEGIN, KEEP).await?;
        let bytes: usize = part.lines.iter().map(|line| line.entry.message.as_str().len()).sum();
        assert!(bytes as u64 <= KEEP_BYTES, "{bytes}");
        let last = part.lines.last().map(|line| line.entry.message.as_str().len());
        assert_eq!(last, Some(size.min(65_536)));
    }
    // The last three large ones and the small one: entries within the limit stay.
    assert_eq!(logs.after(LogPlace::BEGIN, KEEP).await?.lines.len(), 4);
    Ok(())
}

/// Each of two followers gets each entry once, while others append.
pub async fn each_of_two_followers_gets_each_entry_once(logs: &Arc<dyn Logs>) -> Result<()> {
    const ALL: usize = 30;
    let follow = async || {
        let (mut place, mut found) = (LogPlace::BEGIN, Vec::new());
        while found.len() < ALL {
            let part = newer(&**logs, &LogFilter::default(), place).await?;
            found.extend(texts(&part));
            place = part.next;
            tokio::task::yield_now().await;
        }
        Result::Ok(found)
    };
    let append = async || {
        for batch in entries(0..ALL).chunks(3) {
            logs.append(batch).await?;
            tokio::task::yield_now().await;
        }
        Result::Ok(())
    };
    let (one, other, appended) = tokio::join!(follow(), follow(), append());
    appended?;
    assert_eq!((one?, other?), (numbers(0..ALL), numbers(0..ALL)));
    Ok(())
}

/// A log that began again, as after a loss of all data, is followed from its beginning: the followers' positions lie
/// beyond its end.
pub async fn a_log_that_was_begun_anew_is_followed_from_its_beginning(logs: &Arc<dyn Logs>) -> Result<()> {
    let beyond = LogPlace(u64::MAX - 1, 0);
    let nothing = logs.after(beyond, 10).await?;
    assert!(nothing.lines.is_empty());
    logs.append(&entries(0..2)).await?;
    for place in [beyond, nothing.next] {
        assert_eq!(texts(&logs.after(place, 10).await?), numbers(0..2));
    }
    let place = logs.after(beyond, 10).await?.next;
    logs.append(&entries(2..3)).await?;
    assert_eq!(texts(&logs.after(place, 10).await?), ["2"]);
    Ok(())
}

/// Matching entries are found wherever they are. A full page says where older entries are.
pub async fn what_fits_is_found_wherever_it_stands(logs: &Arc<dyn Logs>) -> Result<()> {
    let all: Vec<LogEntry> = entries(0..30)
        .into_iter()
        .enumerate()
        .map(|(number, entry)| match number % 10 {
            0 => LogEntry { level: LogLevel::Error, ..entry },
            _ => entry,
        })
        .collect();
    logs.append(&all).await?;
    let filter = LogFilter { level: Some(LogLevel::Error), ..LogFilter::default() };
    let text = |page: &LogPage| {
        page.lines.iter().map(|line| line.entry.message.to_string()).collect::<Vec<_>>().join(" ")
    };
    let first = newest(&**logs, &filter, LogPlace::END, 2).await?;
    assert_eq!(text(&first), "20 10");
    let older = first.older.expect("there is one more");
    let second = newest(&**logs, &filter, older, 2).await?;
    assert_eq!((text(&second), second.older), ("0".to_owned(), None));
    let none = newest(&**logs, &LogFilter { host: Some("a".into()), ..filter }, LogPlace::END, 2).await?;
    assert_eq!((text(&none), none.older, none.end), (String::new(), None, first.end));
    Ok(())
}

/// Hostile texts are kept harmless and short, such as escape sequences, line feeds and megabytes.
pub async fn hostile_texts_are_kept_harmless_and_short(logs: &Arc<dyn Logs>) -> Result<()> {
    let hostile = "\u{1b}]0;x\u{7}\u{0}\u{202e}\r\n\"}{\\u001b\u{9b}2J\u{fffd}";
    let all = [
        entry(hostile).about(hostile).with_host(hostile).of_class(hostile),
        entry(&hostile.repeat(100_000)).about(&hostile.repeat(100_000)),
    ];
    logs.append(&all).await?;
    let part = logs.after(LogPlace::BEGIN, 10).await?;
    assert_eq!(part.lines.iter().map(|line| line.entry.clone()).collect::<Vec<_>>(), all);
    for line in part.lines {
        let LogEntry { key, message, .. } = line.entry;
        assert!(!key.unwrap_or_default().contains(is_harmful));
        assert!(!message.as_str().contains(|c| is_harmful(c) && c != '\n' && c != '\t'));
        assert!(message.as_str().len() <= 65_536);
    }
    Ok(())
}

/// Entries of an earlier time, from a clock that was set back or a worker that had to wait, stay where they were
/// appended, so that a follower gets them too.
pub async fn entries_of_an_earlier_time_stand_where_they_were_appended(logs: &Arc<dyn Logs>) -> Result<()> {
    logs.append(&[LogEntry { time: UnixMs(2_000_000), ..entry("late") }]).await?;
    let place = logs.after(LogPlace::BEGIN, 10).await?.next;
    logs.append(&[LogEntry { time: UnixMs(1_000_000), ..entry("early") }]).await?;
    assert_eq!(texts(&logs.after(place, 10).await?), ["early"]);
    let since = LogFilter { since: Some(UnixMs(1_500_000)), ..LogFilter::default() };
    let page = newest(&**logs, &since, LogPlace::END, 10).await?;
    assert_eq!(page.lines.len(), 1);
    Ok(())
}
