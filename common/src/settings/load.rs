//! Reading settings from their sources.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Config, ConfigError, Environment, File, FileFormat};

use super::{ServerUrl, Settings};

/// The file that is read when no other is named; it may be absent.
const DEFAULT_FILE: &str = "trawl.toml";

/// Where settings come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file to read, which must exist then. Without one, `trawl.toml` here, if there is one.
    pub file: Option<PathBuf>,
    /// The environment; tests give their own.
    pub env: Vec<(String, String)>,
    /// Keys set by flags: `("fetch.timeout", "5s")`. They win over all else.
    pub flags: Vec<(&'static str, String)>,
}

/// A setting that is wrong: one line that says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Source {
    /// The process's own environment, and `file` if one is named.
    pub fn from_env(file: Option<PathBuf>) -> Self {
        // A variable that is not text can be none of ours.
        let env = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { file, env, flags: Vec::new() }
    }

    /// Sets a key, as a flag does.
    pub fn set(&mut self, key: &'static str, value: impl ToString) {
        self.flags.push((key, value.to_string()));
    }

    /// Reads, merges and checks.
    pub fn load(&self) -> Result<Settings, Invalid> {
        let defaults = Config::try_from(&Settings::default()).map_err(|error| self.explain(&error))?;
        let mut builder = Config::builder().add_source(defaults);
        let path = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        if self.file.is_some() || path.exists() {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Invalid(format!("cannot read settings from {}: {error}", path.display())))?;
            builder = builder.add_source(File::from_str(&text, FileFormat::Toml));
        }
        let env = self.env.iter().filter(|(key, _)| key.starts_with("TRAWL__")).cloned().collect();
        let environment = Environment::with_prefix("TRAWL")
            .prefix_separator("__")
            .separator("__")
            .try_parsing(true)
            .with_list_parse_key("retry.statuses")
            .with_list_parse_key("retry.errors")
            .with_list_parse_key("rabbitmq.nodes")
            .with_list_parse_key("redis.nodes")
            .with_list_parse_key("fetch.allow_networks")
            .with_list_parse_key("fetch.ports")
            .with_list_parse_key("urls.strip_params")
            .list_separator(",")
            .source(Some(env));
        builder = builder.add_source(environment);
        for (key, value) in &self.flags {
            builder = builder.set_override(*key, value.as_str()).map_err(|error| self.explain(&error))?;
        }
        let mut settings: Settings =
            builder.build().and_then(Config::try_deserialize).map_err(|error| self.explain(&error))?;
        self.apply_short_names(&mut settings)?;
        check(&settings)?;
        Ok(settings)
    }

    /// `RABBITMQ_URL`, `REDIS_URL`, `RABBITMQ_HOST` and `REDIS_HOST`: what other tools call them.
    fn apply_short_names(&self, settings: &mut Settings) -> Result<(), Invalid> {
        let var = |name: &str| {
            self.env.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value)
        };
        let servers = [
            ("RABBITMQ_URL", "RABBITMQ_HOST", "TRAWL__RABBITMQ__URL", &mut settings.rabbitmq.url),
            ("REDIS_URL", "REDIS_HOST", "TRAWL__REDIS__URL", &mut settings.redis.url),
        ];
        for (url, host, own, setting) in servers {
            if var(own).is_some() {
                continue;
            }
            if let Some(url) = var(url) {
                *setting = ServerUrl::new(url);
            } else if let Some(name) = var(host) {
                *setting = setting
                    .with_host(name)
                    .ok_or_else(|| Invalid(format!("{host}: `{name}` is not a host name")))?;
            }
        }
        Ok(())
    }

    fn explain(&self, error: &ConfigError) -> Invalid {
        let place = match &self.file {
            Some(file) => file.display().to_string(),
            None => format!("{DEFAULT_FILE} or a TRAWL__ variable"),
        };
        let text = error.to_string().replace('\n', " ");
        Invalid(format!("settings ({place}): {}", text.trim()))
    }
}

fn wrong(key: &str, why: &str) -> Result<(), Invalid> {
    Err(Invalid(format!("settings: {key}: {why}")))
}

/// What would be ignored in silence is an error: someone relies on it.
fn check_links(settings: &Settings) -> Result<(), Invalid> {
    let Settings { rabbitmq, redis, cache, .. } = settings;
    if rabbitmq.ca.is_some() && !rabbitmq.url.is_tls() {
        return wrong("rabbitmq.ca", "is for TLS alone: write amqps:// in rabbitmq.url");
    }
    let redis_tls = redis.url.is_tls() || cache.url.as_ref().is_some_and(ServerUrl::is_tls);
    if redis.ca.is_some() && !redis_tls {
        return wrong("redis.ca", "is for TLS alone: write rediss:// in redis.url");
    }
    if !redis.nodes.is_empty() && !redis.cluster {
        return wrong("redis.nodes", "only a cluster has more nodes: set redis.cluster = true");
    }
    Ok(())
}

fn check_items(settings: &Settings) -> Result<(), Invalid> {
    if settings.items.retention.is_some_and(|retention| retention < Duration::from_secs(1)) {
        return wrong("items.retention", "must be at least 1s");
    }
    if settings.items.max_size.is_some_and(|size| size.as_u64() == 0) {
        return wrong("items.max_size", "must be more than nothing");
    }
    Ok(())
}

fn check(settings: &Settings) -> Result<(), Invalid> {
    let server = |url: &ServerUrl, schemes: &[&str]| {
        url::Url::parse(url.reveal()).is_ok_and(|url| schemes.contains(&url.scheme()) && url.has_host())
    };
    if !server(&settings.rabbitmq.url, &["amqp", "amqps"]) {
        return wrong("rabbitmq.url", "write amqp://user:password@host:port/vhost");
    }
    let redis = ["redis", "rediss"];
    if !server(&settings.redis.url, &redis) {
        return wrong("redis.url", "write redis://user:password@host:port/database");
    }
    if settings.cache.url.as_ref().is_some_and(|url| !server(url, &redis)) {
        return wrong("cache.url", "write redis://user:password@host:port/database");
    }
    if settings.fetch.proxy.as_ref().is_some_and(|url| !server(url, &["http", "socks5"])) {
        return wrong("fetch.proxy", "write http://user:password@host:port, or socks5://");
    }
    if settings.fetch.ports.is_empty() {
        return wrong("fetch.ports", "without a port nothing can be fetched");
    }
    check_links(settings)?;
    check_items(settings)?;
    if settings.worker.concurrency == 0 || settings.worker.prefetch == 0 {
        return wrong("worker", "concurrency and prefetch must be at least 1");
    }
    if settings.recovery.patience < Duration::from_secs(1) {
        return wrong("recovery.patience", "must be at least 1s: less would take what is slow for lost");
    }
    if settings.queues.bulk.ttl.is_zero() || settings.queues.priority.ttl.is_zero() {
        return wrong("queues", "a lane's ttl must be more than nothing");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use crate::settings::SinkSettings;

    fn from(toml: &str, env: &[(&str, &str)]) -> Result<Settings, Invalid> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let env = env.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Source { file: Some(file.path().to_owned()), env, flags: Vec::new() }.load()
    }

    fn complaint(toml: &str, env: &[(&str, &str)]) -> String {
        let text = from(toml, env).unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    }

    #[test]
    fn impatience_is_refused() {
        let told = complaint("", &[("TRAWL__RECOVERY__PATIENCE", "0s")]);
        assert!(told.contains("recovery.patience") && told.contains("at least 1s"), "{told}");
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
        let mut source = Source { file: None, env, flags: Vec::new() };
        source.set("politeness.rate", Rate::Unlimited);
        assert_eq!(source.load().unwrap().politeness.rate, Rate::Unlimited);
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
    fn an_unknown_key_is_named() {
        assert!(complaint("[fetch]\ntimout = \"5s\"", &[]).contains("timout"));
        assert!(complaint("", &[("TRAWL__FETCH__TIMOUT", "5s")]).contains("timout"));
    }

    #[test]
    fn a_bad_value_says_what_to_write() {
        assert!(complaint("[politeness]\nrate = \"fast\"", &[]).contains("write `60/m`"));
        assert!(complaint("[fetch]\ntimeout = \"soon\"", &[]).contains("fetch.timeout"));
        assert!(complaint("[redis]\nurl = \"localhost\"", &[]).contains("redis.url"));
        assert!(complaint("fetch = 3\n", &[]).contains("fetch"));
        assert!(complaint("[fetch]\nports = [\"http\"]", &[]).contains("write `443`"));
        assert!(complaint("[fetch]\nports = []", &[]).contains("fetch.ports"));
        assert!(complaint("[fetch]\nallow_networks = [\"intranet\"]", &[]).contains("write `10.1.0.0/16`"));
        assert!(complaint("[fetch]\nproxy = \"ftp://proxy\"", &[]).contains("fetch.proxy"));
        assert!(complaint("not toml", &[]).contains("line 1"));
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
    fn the_shipped_file_says_what_the_defaults_are() {
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../trawl.toml");
        let source = Source { file: Some(shipped.into()), ..Source::default() };
        assert_eq!(source.load().unwrap(), Settings::default());
    }
}
