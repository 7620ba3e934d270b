//! Reading settings from their sources, and everything that is wrong in them.

use std::fmt;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, File, FileFormat};
use toml::de::DeTable;

use super::Settings;
use super::check::check;
use super::given::Given;
use super::tree::{self, Fault, Step, What};
use super::variables::Variables;
use crate::spider::{Mistake, Places};

/// The file that is read when no other is named; it may be absent.
const DEFAULT_FILE: &str = "trawl.toml";

/// How many mistakes of a file are listed.
const MOST: usize = 100;

/// Where settings come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// What holds where nothing else says it: a program may have defaults of its own.
    pub usual: Settings,
    /// The file to read, which must exist then. Without one, `trawl.toml` here, if there is one.
    pub file: Option<PathBuf>,
    /// The environment; tests give their own.
    pub env: Vec<(String, String)>,
    /// Keys set by flags: `("fetch.timeout", "5s")`. They win over all else.
    pub flags: Vec<(&'static str, String)>,
}

/// What is wrong in settings, all of it, with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The file.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// What is wrong: with its place what stands in the file, with the name of the variable what is from the environment.
    pub mistakes: Vec<Mistake>,
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    /// In one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.mistakes.iter().enumerate() {
            let gap = if number == 0 { "settings: " } else { "; " };
            match mistake.place {
                Some(place) => write!(f, "{gap}{}:{place}: {mistake}", self.path.display())?,
                None => write!(f, "{gap}{mistake}")?,
            }
        }
        Ok(())
    }
}

impl Source {
    /// The process's own environment, and `file` if one is named.
    pub fn from_env(file: Option<PathBuf>) -> Self {
        // A variable that is not text can be none of ours.
        let env = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { file, env, ..Self::default() }
    }

    /// Sets a key, as a flag does.
    pub fn set(&mut self, key: &'static str, value: impl ToString) {
        self.flags.push((key, value.to_string()));
    }

    /// Reads the file, the environment and the flags, each over the one before, and checks what comes of it.
    pub fn load(&self) -> Result<Settings, Invalid> {
        let path = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)).to_owned();
        let invalid = |text: &str, mistakes| Invalid { path: path.clone(), text: text.to_owned(), mistakes };
        let text = if self.file.is_some() || path.exists() {
            std::fs::read_to_string(&path).map_err(|error| {
                invalid("", vec![nowhere(format_args!("cannot read {}: {error}", path.display()))])
            })?
        } else {
            String::new()
        };
        self.merge(&text).map_err(|mistakes| invalid(&text, mistakes))
    }

    fn merge(&self, text: &str) -> Result<Settings, Vec<Mistake>> {
        let usual = toml::to_string(&self.usual).map_err(|error| vec![nowhere(error)])?;
        let (variables, unreadable) = Variables::of(&self.env);
        let given = self.given(&variables);
        let mut layers = Layers::new(&usual)?;
        layers.file(text);
        layers.mistakes.extend(unreadable);
        given.iter().for_each(|given| layers.add(given));
        let Layers { texts, mistakes, file, .. } = layers;
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut settings = layered(&self.usual, texts).map_err(|error| vec![nowhere(error)])?;
        let short_names = variables.set_servers(&mut settings)?;
        let places = Places::of(text);
        let mistakes = check(&settings).into_iter().map(|(key, why)| {
            let by_short_name = short_names.iter().find(|(other, _)| *other == key).map(|(_, name)| *name);
            let by_given = given.iter().rfind(|given| given.key() == key).map(|given| given.name.as_str());
            let path: Vec<Step> = key.split('.').map(|key| Step::Key(key.to_owned())).collect();
            let place = tree::find(&file, &path).map(|(_, value)| places.place(&value.span()));
            match by_short_name.or(by_given) {
                Some(name) => nowhere(format_args!("{name}: {key}: {why}")),
                None => Mistake { place, what: format!("{key}: {why}") },
            }
        });
        let mistakes: Vec<Mistake> = mistakes.collect();
        if mistakes.is_empty() { Ok(settings) } else { Err(mistakes) }
    }

    /// What variables and flags say, in this order.
    fn given(&self, variables: &Variables) -> Vec<Given> {
        let flags = self.flags.iter().map(|(key, value)| Given::new("a flag", key.split('.'), value));
        variables.settings().chain(flags).collect()
    }
}

/// The defaults, with what each of these texts says over the one before.
fn layered<'t>(usual: &Settings, texts: impl IntoIterator<Item = &'t str>) -> Result<Settings, ConfigError> {
    let mut layers = Config::builder().add_source(Config::try_from(usual)?);
    for text in texts {
        layers = layers.add_source(File::from_str(text, FileFormat::Toml));
    }
    layers.build()?.try_deserialize()
}

/// A mistake that is in no file.
pub(super) fn nowhere(what: impl ToString) -> Mistake {
    Mistake { place: None, what: what.to_string() }
}

/// What the sources say, each looked at for mistakes over those before. What is wrong is left out.
struct Layers<'a> {
    tree: DeTable<'a>,
    /// The sources in which nothing was wrong.
    texts: Vec<&'a str>,
    /// What of the file was right.
    file: DeTable<'a>,
    mistakes: Vec<Mistake>,
}

impl<'a> Layers<'a> {
    fn new(usual: &'a str) -> Result<Self, Vec<Mistake>> {
        let tree = DeTable::parse(usual).map_err(|error| vec![nowhere(error.message())])?;
        Ok(Self { tree: tree.into_inner(), texts: Vec::new(), file: DeTable::new(), mistakes: Vec::new() })
    }

    /// Every mistake in the file: each is taken out, and the rest is looked at again.
    fn file(&mut self, text: &'a str) {
        let places = Places::of(text);
        let mut layer = match DeTable::parse(text) {
            Ok(layer) => layer.into_inner(),
            Err(error) => {
                let place = places.place(&error.span().unwrap_or(0..0));
                return self.mistakes.push(Mistake { place: Some(place), what: error.message().to_owned() });
            }
        };
        while let Err(fault) = self.lay(&layer) {
            self.mistakes.push(Mistake { place: Some(places.place(&fault.span)), what: fault.to_string() });
            if self.mistakes.len() >= MOST || !tree::remove(&mut layer, &fault.path) {
                return;
            }
        }
        self.file = layer;
        self.texts.push(text);
        self.mistakes.sort_by_key(|mistake| mistake.place);
    }

    /// The first way to read it in which it fits.
    fn add(&mut self, given: &'a Given) {
        let mut faults = Vec::new();
        for text in &given.texts {
            match DeTable::parse(text).map(|layer| self.lay(layer.get_ref())) {
                Ok(Ok(())) => return self.texts.push(text),
                Ok(Err(fault)) => faults.push(fault),
                Err(_) => {}
            }
        }
        // Of several, one that says more than that another type is wanted.
        let says_more = faults.iter().position(|fault| !matches!(fault.what, What::Type(_)));
        if let Some(fault) = faults.get(says_more.unwrap_or(0)) {
            self.mistakes.push(nowhere(format_args!("{}: {fault}", given.name)));
        }
    }

    fn lay(&mut self, layer: &DeTable<'a>) -> Result<(), Fault> {
        let mut tree = self.tree.clone();
        tree::lay(&mut tree, layer);
        tree::read(&tree)?;
        self.tree = tree;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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

    /// Each mistake with its place, if it has one.
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
    fn impatience_is_refused() {
        let shown = complaint("", &[("TRAWL__RECOVERY__PATIENCE", "0s")]);
        assert!(shown.contains("recovery.patience") && shown.contains("at least 1s"), "{shown}");
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
    fn mistakes_of_the_environment_are_told_by_the_names_of_variables() {
        let env = [
            ("TRAWL__FETCH__TIMOUT", "5s"),
            ("TRAWL__WORKER__CONCURRENCY", "many"),
            ("TRAWL__FETCH__TIMEOUT", "60"),
            ("TRAWL__RECOVERY__PATIENCE", "0s"),
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
            mistakes("", &env[3..])[0].starts_with("TRAWL__RECOVERY__PATIENCE: recovery.patience: must be")
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
    fn a_bad_value_says_what_to_write() {
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
    fn the_shipped_file_says_what_the_defaults_are() {
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
        include_str!("../../../trawl.toml")
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.split_once(']'))
            .map(|(table, _)| table)
            .filter(|table| !table.starts_with('[') && *table != "items.fields")
            .collect()
    }
}
