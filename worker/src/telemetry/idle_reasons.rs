//! Describes why a worker is idle: a crawl must not stall without a reason given.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::frontier::ladder::until_another_worker;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Outcome};
use trawl_common::health::{Health, of_spider};
use trawl_common::names::SpiderName;
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;

/// The time without the end of a URL after which the log states the reason.
pub(crate) const STILL: Duration = Duration::from_secs(10);

/// The time for which a lack is reported after work was last left to other workers for it: that repeats
/// sooner, even if only every 100 s.
const LACKING: Duration = Duration::from_secs(180);

/// The time for which an attempt to run a program that failed is shown.
const PROGRAM_TROUBLE: Duration = Duration::from_secs(60);

/// Maximum number of hosts to track.
const MAX_HOSTS: usize = 1_000;

/// Maximum length of the description of a lack, in bytes.
const WHY: usize = 300;

/// Maximum number of spiders whose lack is reported.
const SAID: usize = 100;

/// Maximum number of reasons in a message.
const MAX_REASONS: usize = 3;

/// The reason why a URL of a host waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The host answered with this status (0 for a redirect) and is in a back-off.
    Refused(u16),
    /// The host is asked once in this time.
    Pace(Duration),
    /// A URL of the host failed with this class, and is retried.
    Retry(Class),
    /// The domain is not known to be quick, and the limit of slow pages in flight is reached.
    Slow,
    /// The session of its spider is not ready.
    LogIn,
}

/// The current reasons for waiting, and the time since a URL ended.
#[derive(Debug, Default)]
pub(crate) struct IdleReasons(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    hosts: BTreeMap<HostKey, (UnixMs, Why)>,
    robots: BTreeMap<Origin, Instant>,
    /// The spiders that this worker cannot run, with the time that work was last left to others, and the
    /// reason.
    lacking: BTreeMap<SpiderName, (Instant, String)>,
    /// The number of URLs that had ended, and when it last changed.
    ended: Option<(u64, Instant)>,
}

impl IdleReasons {
    /// Records that a URL of this host waits until `until`. A refusal takes precedence over other reasons.
    pub(crate) fn note_wait(&self, host: &HostKey, until: UnixMs, why: Why) {
        let now = UnixMs::now();
        let mut waits = self.0.lock();
        if waits.hosts.len() >= MAX_HOSTS {
            waits.hosts.retain(|_, (until, _)| *until > now);
        }
        let known = waits.hosts.get(host).filter(|(until, _)| *until > now);
        let is_said = match (known, why) {
            (Some((_, Why::Refused(_))), Why::Refused(_)) | (None, _) => waits.hosts.len() >= MAX_HOSTS,
            (Some((_, Why::Refused(_))), _) => true,
            (Some((earliest, _)), Why::Pace(_) | Why::Retry(_) | Why::Slow | Why::LogIn) => {
                *earliest <= until
            }
            (Some(_), Why::Refused(_)) => false,
        };
        if !is_said {
            waits.hosts.insert(host.clone(), (until, why));
        }
    }

    /// Records that a URL or a task of this spider was left to other workers, for this reason.
    pub(crate) fn note_lacking(&self, spider: &SpiderName, why: &str) {
        let mut waits = self.0.lock();
        waits.lacking.retain(|_, (last, _)| last.elapsed() < LACKING);
        if waits.lacking.len() < MAX_HOSTS {
            waits.lacking.insert(spider.clone(), (Instant::now(), printable(why, WHY)));
        }
    }

    /// Returns the outcome of work whose spider this worker cannot run; another worker may be able to.
    pub(crate) fn requeue(&self, message: &Message, why: &str) -> Outcome {
        self.note_lacking(&message.crawl.spider, why);
        requeue(message)
    }

    /// Returns the outcome of work whose program cannot be run here; another worker may be able to run it.
    pub(crate) fn cannot_run(&self, health: &Health, message: &Message, why: String) -> Outcome {
        let outcome = self.requeue(message, &why);
        let what = of_spider(&message.crawl.spider, "running its program");
        health.report_recent_failure(&what, &Error::new(ErrorKind::Unavailable, why), PROGRAM_TROUBLE);
        outcome
    }

    /// Records that this worker can run this spider.
    pub(crate) fn note_work_for(&self, spider: &SpiderName) {
        self.0.lock().lacking.remove(spider);
    }

    /// Returns the spiders whose work was left to others lately, with the reasons; only some of them if there
    /// are many.
    pub(crate) fn lacks(&self) -> BTreeMap<SpiderName, String> {
        let waits = self.0.lock();
        let lacking = waits.lacking.iter().filter(|(_, (last, _))| last.elapsed() < LACKING);
        lacking.take(SAID).map(|(spider, (_, why))| (spider.clone(), why.clone())).collect()
    }

    /// Records that the robots.txt of this origin is being fetched, until the returned value is dropped.
    pub(crate) fn asks_robots<'a>(&'a self, origin: &'a Origin) -> Asking<'a> {
        self.0.lock().robots.insert(origin.clone(), Instant::now());
        Asking { idle_reasons: self, origin }
    }

    /// Returns the reason for waiting, if no URL has ended for a while. `ended` is the current number of
    /// ended URLs.
    pub(crate) fn reason(&self, ended: u64) -> Option<String> {
        let mut waits = self.0.lock();
        match waits.ended {
            Some((before, since)) if before == ended => {
                if since.elapsed() < STILL {
                    return None;
                }
            }
            _ => {
                waits.ended = Some((ended, Instant::now()));
                return None;
            }
        }
        waits.text(UnixMs::now())
    }
}

impl Waits {
    fn text(&self, now: UnixMs) -> Option<String> {
        let slow = self.robots.iter().filter(|(_, since)| since.elapsed() >= STILL / 2);
        let robots = slow.map(|(origin, _)| format!("{}/robots.txt is not known yet", origin.as_str()));
        let mut hosts: Vec<_> = self.hosts.iter().filter(|(_, (until, _))| *until > now).collect();
        hosts.sort_by_key(|(_, (until, _))| *until);
        let hosts = hosts.into_iter().map(|(host, (until, why))| format!("{host} {why} until {until}"));
        let lacking = self.lacking.iter().filter(|(_, (last, _))| last.elapsed() < LACKING);
        let lacking =
            lacking.map(|(spider, (_, why))| format!("spider {spider}: {why}: it is left to other workers"));
        let mut all: Vec<String> = lacking.chain(robots).chain(hosts).collect();
        let more = all.len().saturating_sub(MAX_REASONS);
        all.truncate(MAX_REASONS);
        match more {
            0 if all.is_empty() => None,
            0 => Some(all.join("; ")),
            more => Some(format!("{}; and {more} more", all.join("; "))),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(0) => f.write_str("redirects to a ban and is left alone"),
            Self::Refused(status) => write!(f, "answered {status} and is left alone"),
            Self::Pace(interval) => {
                write!(f, "is asked once each {interval:?}, not")
            }
            Self::Retry(Class::Handler) => {
                f.write_str("has a page that the spider's program failed at, and which it is not given again")
            }
            Self::Retry(class) => write!(f, "failed ({class}) and is not tried again"),
            Self::LogIn => f.write_str("needs a log-in of its spider, and is not asked"),
            Self::Slow => {
                f.write_str("has to make way, as too many slow pages are under way, and is not asked")
            }
        }
    }
}

/// A robots.txt that is being fetched.
pub(crate) struct Asking<'a> {
    idle_reasons: &'a IdleReasons,
    origin: &'a Origin,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.idle_reasons.0.lock().robots.remove(self.origin);
    }
}

/// Returns the outcome of work that is left to other workers.
pub(crate) fn requeue(message: &Message) -> Outcome {
    Outcome::Requeue { until: UnixMs::now().plus(until_another_worker(message.left)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostKey {
        HostKey::from_text(name)
    }

    fn in_seconds(seconds: u64) -> UnixMs {
        UnixMs::now().plus(Duration::from_secs(seconds))
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_while_without_the_end_of_a_url_it_says_what_it_waits_for() {
        let idle_reasons = IdleReasons::default();
        idle_reasons.note_wait(&host("a.example"), in_seconds(60), Why::Refused(503));
        assert_eq!(idle_reasons.reason(7), None);
        tokio::time::advance(STILL / 2).await;
        assert_eq!(idle_reasons.reason(7), None);
        tokio::time::advance(STILL / 2).await;
        let reason = idle_reasons.reason(7).unwrap();
        assert!(reason.starts_with("a.example answered 503 and is left alone until 20"), "{reason}");
        assert_eq!(idle_reasons.reason(8), None, "a URL has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_outweighs_the_pace_and_the_next_slot_the_later_ones() {
        let idle_reasons = IdleReasons::default();
        let pace = Why::Pace(Duration::from_secs(60));
        let (refused, paced) = (host("refused.example"), host("paced.example"));
        let until = in_seconds(500);
        idle_reasons.note_wait(&refused, until, Why::Refused(429));
        idle_reasons.note_wait(&refused, in_seconds(5), pace);
        let next = in_seconds(30);
        for at in [in_seconds(90), next, in_seconds(60)] {
            idle_reasons.note_wait(&paced, at, pace);
        }
        let origin = "http://slow.example/".parse::<trawl_common::web::url::CanonicalUrl>().unwrap().origin();
        let asking = idle_reasons.asks_robots(&origin);
        idle_reasons.reason(0);
        tokio::time::advance(STILL).await;
        let expected = format!(
            "http://slow.example/robots.txt is not known yet; paced.example is asked once each 60s, not until {next}; \
             refused.example answered 429 and is left alone until {until}"
        );
        assert_eq!(idle_reasons.reason(0), Some(expected));
        drop(asking);
        assert!(!idle_reasons.reason(0).unwrap().contains("robots.txt"));
    }

    #[tokio::test(start_paused = true)]
    async fn it_says_whose_file_is_not_here_as_long_as_its_urls_come() {
        let idle_reasons = IdleReasons::default();
        let shop: SpiderName = "shop".parse().unwrap();
        idle_reasons.note_lacking(&shop, "its file is not there");
        assert_eq!(idle_reasons.lacks(), [(shop.clone(), "its file is not there".to_owned())].into());
        idle_reasons.reason(0);
        tokio::time::advance(STILL).await;
        let expected = "spider shop: its file is not there: it is left to other workers";
        assert_eq!(idle_reasons.reason(0).as_deref(), Some(expected));
        tokio::time::advance(LACKING).await;
        assert_eq!((idle_reasons.reason(0), idle_reasons.lacks().len()), (None, 0));
        idle_reasons.note_lacking(&shop, "its file is not there");
        idle_reasons.note_work_for(&shop);
        assert_eq!(
            (idle_reasons.reason(0), idle_reasons.lacks().len()),
            (None, 0),
            "somebody has put it there"
        );
    }

    #[test]
    fn it_blames_the_program_for_what_the_program_failed_at() {
        let words = |class| format!("a.example {} until 8:00", Why::Retry(class));
        assert_eq!(words(Class::Dns), "a.example failed (dns) and is not tried again until 8:00");
        assert_eq!(
            words(Class::Handler),
            "a.example has a page that the spider's program failed at, and which it is not given again until 8:00"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_hosts_it_names_a_few() {
        let idle_reasons = IdleReasons::default();
        for number in 0..MAX_HOSTS + 50 {
            let failed = Why::Retry(Class::Timeout);
            idle_reasons.note_wait(&host(&format!("h{number}.example")), in_seconds(60), failed);
        }
        idle_reasons.reason(0);
        tokio::time::advance(STILL).await;
        let reason = idle_reasons.reason(0).unwrap();
        assert!(reason.contains("failed (timeout) and is not tried again until"), "{reason}");
        assert!(reason.ends_with("; and 997 more"), "{reason}");
    }
}
