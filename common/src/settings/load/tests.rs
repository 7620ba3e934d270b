use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::politeness::rate::Rate;
use crate::settings::SinkSettings;

fn from(toml: &str, env: &[(&str, &str)]) -> Result<Settings, Invalid> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), toml).unwrap();
    let env = env.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Source { file: Some(file.path().to_owned()), env, ..Source::default() }.load()
}

/// Returns each mistake with its place, if it has one.
fn mistakes(toml: &str, env: &[(&str, &str)]) -> Vec<String> {
    let shown = |mistake: &Mistake| match mistake.place {
        Some(place) => format!("{place} {mistake}"),
        None => mistake.to_string(),
    };
    from(toml, env).unwrap_err().mistakes.iter().map(shown).collect()
}

fn complaint(toml: &str, env: &[(&str, &str)]) -> String {
    let text = from(toml, env).unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn a_time_that_would_take_what_is_slow_for_lost_is_refused() {
    let shown = complaint("", &[("TRAWL__RECOVERY__LOST_AFTER", "0s")]);
    assert!(shown.contains("recovery.lost_after") && shown.contains("at least 1s"), "{shown}");
}

#[test]
fn an_empty_variable_is_an_empty_list() {
    let file = "[retry]\nstatuses = [500]\n[spiders]\nvariables = [\"A\"]";
    let empty = [("TRAWL__RETRY__STATUSES", ""), ("TRAWL__SPIDERS__VARIABLES", " ")];
    let settings = from(file, &empty).unwrap();
    assert!(settings.retry.statuses.is_empty() && settings.spiders.variables.is_empty(), "{settings:?}");
}

#[test]
fn the_folder_for_items_of_delivered_spiders_holds_no_programs() {
    for (root, is_refused) in
        [(".", true), ("spiders", true), ("./spiders/../items", false), ("items", false)]
    {
        let shown =
            from(&format!("[spiders]\nsinks_dir = '{root}'"), &[]).err().map(|wrong| wrong.to_string());
        assert_eq!(
            shown.is_some_and(|shown| shown.contains("spiders_dir is below it")),
            is_refused,
            "{root}"
        );
    }
    let listed = from("", &[("TRAWL__SPIDERS__VARIABLES", "SHOP_TOKEN,OTHER")]).unwrap();
    assert_eq!(listed.spiders.variables, ["SHOP_TOKEN", "OTHER"]);
}

#[test]
fn no_source_gives_the_defaults() {
    assert_eq!(from("", &[]).unwrap(), Settings::default());
}

#[test]
fn the_environment_wins_over_the_file_and_flags_over_both() {
    let toml = "[politeness]\nrate = \"1/s\"\nburst = 2";
    let settings = from(toml, &[("TRAWL__POLITENESS__RATE", "2/s")]).unwrap();
    assert_eq!(settings.politeness.rate, "2/s".parse().unwrap());
    assert_eq!(settings.politeness.burst, 2);

    let env = vec![("TRAWL__POLITENESS__RATE".to_owned(), "2/s".to_owned())];
    let mut source = Source { env, ..Source::default() };
    source.set("politeness.rate", Rate::Unlimited);
    assert_eq!(source.load().unwrap().politeness.rate, Rate::Unlimited);
}

#[test]
fn what_a_program_has_for_a_default_is_below_every_source() {
    let level = |toml: &str, env: &[(&str, &str)]| {
        let env = env.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let mut source = Source { env, ..Source::default() };
        source.usual.log.level = "warn".to_owned();
        source.merge(toml).unwrap().log.level
    };
    assert_eq!(level("", &[]), "warn");
    assert_eq!(level("[log]\nlevel = \"debug\"", &[]), "debug");
    assert_eq!(level("[log]\nlevel = \"debug\"", &[("TRAWL__LOG__LEVEL", "error")]), "error");
}

#[test]
fn every_kind_of_value_can_come_from_the_environment() {
    let settings = from(
        "",
        &[
            ("TRAWL__FETCH__ALLOW_PRIVATE", "true"),
            ("TRAWL__FETCH__MAX_BODY", "2MB"),
            ("TRAWL__FETCH__CONTACT", "https://example.com/bot"),
            ("TRAWL__FETCH__ALLOW_NETWORKS", "10.1.0.0/16,127.0.0.1"),
            ("TRAWL__FETCH__PORTS", "80,8000-8999"),
            ("TRAWL__URLS__STRIP_PARAMS", "ref,sess*"),
            ("TRAWL__FETCH__PROXY", "socks5://proxy:1080"),
            ("TRAWL__RETRY__STATUSES", "500,503"),
            ("TRAWL__WORKER__CONCURRENCY", "7"),
            ("TRAWL__QUEUES__BULK__TTL", "6h"),
            ("TRAWL__QUEUES__BULK__ACKS", "late"),
            ("TRAWL__RABBITMQ__NODES", "mq2:5672,mq3:5672"),
            ("TRAWL__REDIS__CLUSTER", "true"),
            ("TRAWL__REDIS__NODES", "r2:6379"),
        ],
    )
    .unwrap();
    assert!(settings.fetch.allow_private);
    assert_eq!(settings.fetch.max_body.as_u64(), 2_000_000);
    assert_eq!(settings.fetch.allow_networks, ["10.1.0.0/16", "127.0.0.1"].map(|n| n.parse().unwrap()));
    assert_eq!(settings.fetch.ports, ["80", "8000-8999"].map(|ports| ports.parse().unwrap()));
    assert_eq!(settings.fetch.proxy.unwrap().reveal(), "socks5://proxy:1080");
    assert_eq!(settings.retry.statuses, [500, 503]);
    assert_eq!(settings.urls.strip_params, ["ref", "sess*"].map(|name| name.parse().unwrap()));
    assert_eq!(settings.worker.concurrency, 7);
    assert_eq!(settings.queues.bulk.ttl.as_secs(), 6 * 3600);
    assert_eq!(settings.rabbitmq.nodes, ["mq2:5672".parse().unwrap(), "mq3:5672".parse().unwrap()]);
    assert_eq!((settings.redis.cluster, settings.redis.nodes.len()), (true, 1));
}

#[test]
fn one_key_of_a_lane_can_be_set_without_the_other() {
    let settings = from("[queues.bulk]\nttl = \"2h\"", &[]).unwrap();
    assert_eq!(settings.queues.bulk.ttl.as_secs(), 7200);
    assert_eq!(settings.queues.bulk.acks, Settings::default().queues.bulk.acks);
}

#[test]
fn several_sinks_can_be_named() {
    let toml = "[items]\nretention = \"7d\"\nmax_size = \"2GB\"\n[[sinks]]\nkind = \"stream\"\n\
                [[sinks]]\nkind = \"postgres\"\nurl = \"postgres://u:s3cret@db/crawls\"\ntable = \"pages\"";
    let settings = from(toml, &[]).unwrap();
    assert_eq!(settings.items.retention, Some(Duration::from_secs(7 * 24 * 3600)));
    assert_eq!(settings.items.max_size.unwrap().as_u64(), 2_000_000_000);
    assert!(matches!(&settings.sinks[..], [SinkSettings::Stream, SinkSettings::Postgres { .. }]));
    assert!(!format!("{settings:?}").contains("s3cret"));
    assert!(complaint("[items]\nretention = \"0s\"", &[]).contains("items.retention"));
    assert!(complaint("[items]\nmax_size = 0", &[]).contains("items.max_size"));
    assert!(complaint("[[sinks]]\nkind = \"pigeon\"", &[]).contains("pigeon"));
}

#[test]
fn every_mistake_in_the_file_is_reported_with_its_place() {
    let toml = "spider_dir = \"x\"\n[fetch]\ntimout = \"5s\"\nports = [\"http\", \"80\", \"x\"]\n[worker]\n\
                concurrency = \"many\"\nprefetch = 70000\n[queues]\ntype = \"quorom\"\n[[sinks]]\nkind = \"jsonl\"\n\
                path = \"a\"\nrotat = \"1 GB\"\n[[sinks]]\nkind = \"csv\"\n[log]\nlevel = 3\n[politness]\nrate = 1\n";
    let shown = mistakes(toml, &[]);
    let expected = [
        "1:1 there is no key `spider_dir`: did you mean `spiders_dir`?",
        "3:1 there is no key `fetch.timout`: did you mean `timeout`?",
        "4:10 fetch.ports: `http` ",
        "4:24 fetch.ports: `x` ",
        "6:15 worker.concurrency: a whole number is wanted, not a text",
        "7:12 worker.prefetch: must be 0 to 65535",
        "9:8 queues.type: there is no `quorom`: did you mean `quorum`?",
        "13:1 there is no key `sinks.rotat`: did you mean `rotate`?",
        "14:1 sinks: `path` is missing",
        "17:9 log.level: a text in quotes is wanted, not a whole number",
        "18:2 there is no key `politness`: did you mean `politeness`?",
    ];
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.starts_with(expected), "{shown}\nnot {expected}");
    }
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
}

#[test]
fn mistakes_in_the_environment_name_the_variable() {
    let env = [
        ("TRAWL__FETCH__TIMOUT", "5s"),
        ("TRAWL__WORKER__CONCURRENCY", "many"),
        ("TRAWL__FETCH__TIMEOUT", "60"),
        ("TRAWL__RECOVERY__LOST_AFTER", "0s"),
    ];
    assert_eq!(
        mistakes("", &env[..3]),
        [
            "TRAWL__FETCH__TIMOUT: there is no key `fetch.timout`: did you mean `timeout`?",
            "TRAWL__WORKER__CONCURRENCY: worker.concurrency: a whole number is wanted, not a text",
            "TRAWL__FETCH__TIMEOUT: fetch.timeout: `60` is not a duration: write `60s`, `5m` or `1h 30m`",
        ]
    );
    assert!(
        mistakes("", &env[3..])[0].starts_with("TRAWL__RECOVERY__LOST_AFTER: recovery.lost_after: must be")
    );
    assert!(
        mistakes("", &[("REDIS_URL", "nonsense")])[0].starts_with("REDIS_URL: redis.url: write redis://")
    );
}

#[test]
fn what_does_not_fit_together_is_reported_where_it_stands() {
    let shown = mistakes(
        "[worker]\nprefetch = 0\n[redis]\nca = \"x\"\n[[sinks]]\nkind = \"csv\"\npath = \"{day}\"",
        &[],
    );
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert!(shown.iter().any(|shown| shown.starts_with("2:12 worker.prefetch: ")), "{shown:#?}");
    assert!(shown.iter().any(|shown| shown.starts_with("4:6 redis.ca: ")), "{shown:#?}");
    assert!(shown.iter().any(|shown| shown.contains("sinks: `{day}` stands for nothing")), "{shown:#?}");
}

#[test]
fn an_unknown_key_is_named() {
    assert!(complaint("[fetch]\ntimout = \"5s\"", &[]).contains("timout"));
    assert!(complaint("", &[("TRAWL__FETCH__TIMOUT", "5s")]).contains("timout"));
}

#[test]
fn the_error_for_a_bad_value_names_what_to_write() {
    assert!(complaint("[politeness]\nrate = \"fast\"", &[]).contains("write `60/m`"));
    assert!(complaint("[fetch]\ntimeout = \"soon\"", &[]).contains("fetch.timeout"));
    assert!(complaint("[redis]\nurl = \"localhost\"", &[]).contains("redis.url"));
    assert!(complaint("fetch = 3\n", &[]).contains("fetch"));
    assert!(complaint("[fetch]\nports = [\"http\"]", &[]).contains("write `443`"));
    assert!(complaint("[fetch]\nports = []", &[]).contains("fetch.ports"));
    assert!(complaint("[fetch]\nallow_networks = [\"intranet\"]", &[]).contains("write `10.1.0.0/16`"));
    assert!(complaint("[fetch]\nproxy = \"ftp://proxy\"", &[]).contains("fetch.proxy"));
    assert!(complaint("not toml", &[]).contains(":1:"));
}

#[test]
fn what_would_be_ignored_in_silence_is_an_error() {
    assert!(complaint("[rabbitmq]\nca = \"ca.pem\"", &[]).contains("amqps://"));
    assert!(complaint("[redis]\nca = \"ca.pem\"", &[]).contains("rediss://"));
    assert!(complaint("[redis]\nnodes = [\"r2:6379\"]", &[]).contains("redis.cluster"));
    assert!(complaint("[rabbitmq]\nnodes = [\"mq2\"]", &[]).contains("host:port"));
    let own_cache = "[redis]\nca = \"ca.pem\"\n[cache]\nurl = \"rediss://cache:6379\"";
    let cache = from(own_cache, &[]).unwrap().cache_server().unwrap();
    assert_eq!(cache.ca.unwrap().to_str(), Some("ca.pem"));
}

#[test]
fn a_complaint_holds_no_password() {
    for setting in [
        "[rabbitmq]\nurl = \"http://trawl:s3cret@mq\"",
        "[fetch]\nproxy = \"trawl:s3cret@proxy:3128\"",
        "[fetch]\nproxy = \"https://trawl:s3cret@proxy:3128\"",
    ] {
        let text = complaint(setting, &[]);
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn the_names_that_other_tools_use_work_too() {
    let settings = from("", &[("RABBITMQ_HOST", "mq"), ("REDIS_URL", "redis://r:1/2")]).unwrap();
    assert_eq!(settings.rabbitmq.url.reveal(), "amqp://mq:5672/%2f");
    assert_eq!(settings.redis.url.reveal(), "redis://r:1/2");
}

#[test]
fn the_shipped_file_has_the_defaults() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../trawl.toml");
    let source = Source { file: Some(shipped.into()), ..Source::default() };
    assert_eq!(source.load().unwrap(), Settings::default());
}

fn merged(text: &str) -> Result<Settings, Vec<Mistake>> {
    Source::default().merge(text)
}

proptest! {
    #[test]
    fn any_text_is_read_or_has_mistakes_at_places_within_it(text in "(\\PC|\n|[\\[\\]={}'\"]){0,80}") {
        for mistake in merged(&text).err().into_iter().flatten() {
            let place = mistake.place.unwrap();
            let line = text.split('\n').nth(place.line as usize - 1);
            prop_assert!(line.is_some_and(|line| place.column as usize <= line.chars().count() + 1), "{:?}", mistake);
        }
    }

    #[test]
    fn an_unknown_key_in_any_table_is_the_one_mistake(table in prop::sample::select(tables()), key in "[a-z]{3,8}_zz") {
        let found = merged(&format!("[{table}]\n{key} = 1")).unwrap_err();
        prop_assert_eq!(found.len(), 1, "{:#?}", found);
        prop_assert_eq!(found[0].place.unwrap().line, 2);
        prop_assert!(found[0].what.starts_with(&format!("there is no key `{table}.{key}`")), "{:?}", found);
    }
}

/// The tables whose keys are settings.
fn tables() -> Vec<&'static str> {
    include_str!("../../../../trawl.toml")
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once(']'))
        .map(|(table, _)| table)
        .filter(|table| !table.starts_with('[') && *table != "items.fields")
        .collect()
}
