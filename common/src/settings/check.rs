//! Checks of settings against each other, when each is valid by itself.

use std::collections::HashSet;
use std::time::Duration;

use bytesize::ByteSize;

use super::{ServerUrl, Settings, path_below};

/// Returns all errors, each with the key that it is about.
pub(super) fn check(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let mut refuse = |is_wrong: bool, key: &'static str, why: &str| {
        if is_wrong {
            wrong.push((key, why.to_owned()));
        }
    };
    servers(settings, &mut refuse);
    links(settings, &mut refuse);
    webhooks(settings, &mut refuse);
    let is_shared = settings.api.is_one_token_of_two();
    refuse(is_shared, "api", "two callers have the same token: give each one of its own");
    limits(settings, &mut refuse);
    let has_programs = path_below(&settings.spiders_dir, &settings.spiders.sinks_dir).is_some();
    refuse(
        has_programs,
        "spiders.sinks_dir",
        "spiders_dir is below it: items could be written over programs",
    );
    for sink in &settings.sinks {
        if let Err(what) = sink.check() {
            refuse(true, "sinks", &what);
        }
    }
    wrong
}

fn is_server(url: &ServerUrl, schemes: &[&str]) -> bool {
    url::Url::parse(url.reveal()).is_ok_and(|url| schemes.contains(&url.scheme()) && url.has_host())
}

fn servers(settings: &Settings, refuse: &mut impl FnMut(bool, &'static str, &str)) {
    let amqp = is_server(&settings.rabbitmq.url, &["amqp", "amqps"]);
    refuse(!amqp, "rabbitmq.url", "write amqp://user:password@host:port/vhost");
    let redis = |url: &ServerUrl| is_server(url, &["redis", "rediss"]);
    let write_redis = "write redis://user:password@host:port/database";
    refuse(!redis(&settings.redis.url), "redis.url", write_redis);
    refuse(settings.cache.url.as_ref().is_some_and(|url| !redis(url)), "cache.url", write_redis);
    let postgres = |url: &ServerUrl| is_server(url, &["postgres", "postgresql"]);
    let write_postgres = "write postgres://user:password@host:port/database";
    let is_none = settings.history.postgres.as_ref().is_some_and(|url| !postgres(url));
    refuse(is_none, "history.postgres", write_postgres);
    let is_none = settings.tracing.otlp.as_ref().is_some_and(|url| !is_server(url, &["http", "https"]));
    refuse(is_none, "tracing.otlp", "write http://host:4318");
    let is_share = (0.0..=1.0).contains(&settings.tracing.sample);
    refuse(!is_share, "tracing.sample", "is a share: 0.0 to 1.0");
    let proxy = |url: &ServerUrl| is_server(url, &["http", "socks5"]);
    let is_alone = settings.history.logs && settings.history.postgres.is_none();
    refuse(is_alone, "history.logs", "there is no history: set history.postgres");
    let write_proxy = "write http://user:password@host:port, or socks5://";
    refuse(settings.fetch.proxy.as_ref().is_some_and(|url| !proxy(url)), "fetch.proxy", write_proxy);
}

fn webhooks(settings: &Settings, refuse: &mut impl FnMut(bool, &'static str, &str)) {
    let mut known = HashSet::new();
    for webhook in &settings.webhooks {
        let is_web = is_server(&webhook.url, &["http", "https"]);
        refuse(!is_web, "webhooks", "write https://host/path in `url`");
        let is_new = known.insert(webhook.url.reveal());
        refuse(
            !is_new,
            "webhooks",
            "the same `url` is there twice: name all of its events and spiders in one place",
        );
    }
    let is_no_share = settings.events.failing_above > 100;
    refuse(is_no_share, "events.failing_above", "is a percentage: 0 to 100");
}

/// Checks for settings that would be ignored silently: they are errors, because someone relies on them.
fn links(settings: &Settings, refuse: &mut impl FnMut(bool, &'static str, &str)) {
    let Settings { rabbitmq, redis, cache, .. } = settings;
    let is_plain = rabbitmq.ca.is_some() && !rabbitmq.url.is_tls();
    refuse(is_plain, "rabbitmq.ca", "is for TLS alone: write amqps:// in rabbitmq.url");
    let is_alone = rabbitmq.key.is_none() && !rabbitmq.former_keys.is_empty();
    refuse(is_alone, "rabbitmq.former_keys", "are for a fleet that has a key now: set rabbitmq.key");
    let redis_tls = redis.url.is_tls() || cache.url.as_ref().is_some_and(ServerUrl::is_tls);
    let is_plain = redis.ca.is_some() && !redis_tls;
    refuse(is_plain, "redis.ca", "is for TLS alone: write rediss:// in redis.url");
    let is_alone = !redis.nodes.is_empty() && !redis.cluster;
    refuse(is_alone, "redis.nodes", "only a cluster has more nodes: set redis.cluster = true");
}

fn limits(settings: &Settings, refuse: &mut impl FnMut(bool, &'static str, &str)) {
    let Settings { items, worker, browser, queues, redis, .. } = settings;
    let is_less_than_a_few = redis.max_robots_bytes < ByteSize::mb(1);
    refuse(
        is_less_than_a_few,
        "redis.max_robots_bytes",
        "must be at least 1 MB: one file may take half of that",
    );
    refuse(settings.fetch.ports.is_empty(), "fetch.ports", "without a port nothing can be fetched");
    let second = Duration::from_secs(1);
    refuse(items.retention.is_some_and(|time| time < second), "items.retention", "must be at least 1s");
    let is_nothing = items.max_size.is_some_and(|size| size.as_u64() == 0);
    refuse(is_nothing, "items.max_size", "must be more than nothing");
    let is_less_than_a_few = settings.log.keep_bytes < ByteSize::mb(1);
    refuse(is_less_than_a_few, "log.keep_bytes", "must be at least 1 MB; `log.keep = 0` keeps nothing");
    refuse(worker.concurrency == 0, "worker.concurrency", "must be at least 1");
    refuse(worker.prefetch == 0, "worker.prefetch", "must be at least 1");
    let is_nothing = worker.page_memory.as_u64() == 0;
    refuse(is_nothing, "worker.page_memory", "must be more than nothing");
    refuse(browser.contexts == 0, "browser.contexts", "must be at least 1");
    let is_too_little = browser.memory < ByteSize::mb(500);
    refuse(
        is_too_little,
        "browser.memory",
        "must be at least 500 MB: a browser without a page takes most of that",
    );
    let too_short = settings.recovery.lost_after < second;
    refuse(too_short, "recovery.lost_after", "must be at least 1s: less would take what is slow for lost");
    refuse(queues.bulk.ttl.is_zero(), "queues.bulk.ttl", "must be more than nothing");
    refuse(queues.priority.ttl.is_zero(), "queues.priority.ttl", "must be more than nothing");
    refuse(queues.failed.ttl.is_zero(), "queues.failed.ttl", "must be more than nothing");
}
