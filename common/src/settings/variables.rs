//! The environment variables that are settings. Each can be set by its name, or be in a file that `<name>_FILE`
//! names, like the secrets of Docker and Kubernetes.

use std::path::Path;

use super::given::Given;
use super::{ServerUrl, Settings};
use crate::mistake::Mistake;
use crate::small_file;

/// The prefix of variables that are settings.
const PREFIX: &str = "TRAWL__";
/// The suffix of a variable that names a file with the value.
const IN_FILE: &str = "_FILE";
/// A variable that ends so, and is the setting itself: a file is what it sets.
const SETS_A_FILE: &str = "TRAWL__SECRETS__KEY_FILE";
/// Maximum size of such a file.
const MAX_KILOBYTES: u16 = 64;

/// The names of a server's address: its key, the URL and host variables that other tools use, and trawl's own
/// variable.
type Server = (&'static str, &'static str, &'static str, &'static str);
const RABBITMQ: Server = ("rabbitmq.url", "RABBITMQ_URL", "RABBITMQ_HOST", "TRAWL__RABBITMQ__URL");
const REDIS: Server = ("redis.url", "REDIS_URL", "REDIS_HOST", "TRAWL__REDIS__URL");

/// Every variable that is a setting.
pub(super) struct Variables(Vec<Variable>);

struct Variable {
    /// The name of the variable.
    name: String,
    /// The name without `_FILE`.
    sets: String,
    value: String,
}

impl Variables {
    /// Returns the settings in an environment, and the mistakes in them.
    pub(super) fn new(env: &[(String, String)]) -> (Self, Vec<Mistake>) {
        let (mut read, mut wrong) = (Vec::new(), Vec::new());
        for (name, value) in env {
            match Variable::read(name, value, env) {
                Some(Ok(variable)) => read.push(variable),
                Some(Err(why)) => wrong.push(Mistake::nowhere(format_args!("{name}: {why}"))),
                None => {}
            }
        }
        (Self(read), wrong)
    }

    /// Returns the settings of the variables that are named for a key.
    pub(super) fn settings(&self) -> impl Iterator<Item = Given> {
        self.0.iter().filter_map(|variable| {
            let key = variable.sets.strip_prefix(PREFIX)?.to_lowercase();
            Some(Given::new(&variable.name, key.split("__"), &variable.value))
        })
    }

    /// Sets the addresses from the variables of other tools, unless trawl's own variable is set. Returns the keys
    /// that it set, each with the variable's name.
    pub(super) fn set_servers(
        &self,
        settings: &mut Settings,
    ) -> Result<Vec<(&'static str, &str)>, Vec<Mistake>> {
        let (mut set, mut wrong) = (Vec::new(), Vec::new());
        for ((key, url, host, own), setting) in
            [(RABBITMQ, &mut settings.rabbitmq.url), (REDIS, &mut settings.redis.url)]
        {
            if self.find(own).is_some() {
                continue;
            }
            if let Some(variable) = self.find(url) {
                *setting = ServerUrl::new(&variable.value);
                set.push((key, variable.name.as_str()));
            } else if let Some(Variable { name, value, .. }) = self.find(host) {
                match setting.with_host(value) {
                    Some(moved) => *setting = moved,
                    None => {
                        wrong.push(Mistake::nowhere(format_args!("{name}: `{value}` is not a host name")))
                    }
                }
                set.push((key, name));
            }
        }
        if wrong.is_empty() { Ok(set) } else { Err(wrong) }
    }

    fn find(&self, name: &str) -> Option<&Variable> {
        self.0.iter().find(|variable| variable.sets == name && !variable.value.is_empty())
    }
}

impl Variable {
    /// Returns the variable, if it is a setting, with the content of its file if it names one. An empty file name
    /// counts as none.
    fn read(name: &str, value: &str, env: &[(String, String)]) -> Option<Result<Self, String>> {
        let is_setting = |name: &str| {
            let is_server = |(_, url, host, _): &Server| name == *url || name == *host;
            name.starts_with(PREFIX) || [RABBITMQ, REDIS].iter().any(is_server)
        };
        let variable =
            |sets: &str, value: String| Self { name: name.to_owned(), sets: sets.to_owned(), value };
        match name.strip_suffix(IN_FILE).filter(|sets| is_setting(sets) && name != SETS_A_FILE) {
            Some(_) if value.is_empty() => None,
            Some(sets) if env.iter().any(|(other, value)| other == sets && !value.is_empty()) => {
                Some(Err(format!("{sets} is set as well: set one of them")))
            }
            Some(sets) => Some(text(Path::new(value)).map(|text| variable(sets, text))),
            None => is_setting(name).then(|| Ok(variable(name, value.to_owned()))),
        }
    }
}

/// Reads a file, without the end of its last line.
fn text(path: &Path) -> Result<String, String> {
    let text =
        small_file::read(path, MAX_KILOBYTES).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if text.is_empty() { Err(format!("{} is empty", path.display())) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::settings::{Settings, Source};

    /// Loads settings from variables that name files with these contents; a name with `=` is set directly.
    fn settings(variables: &[(&str, &[u8])]) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let env = variables.iter().map(|(name, text)| {
            if let Some(name) = name.strip_suffix('=') {
                return (name.to_owned(), String::from_utf8(text.to_vec()).unwrap());
            }
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            (name.to_string(), path.to_str().unwrap().to_owned())
        });
        let source = Source { env: env.collect(), ..Source::default() };
        source.load().map_err(|invalid| invalid.to_string())
    }

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef\n";

    #[test]
    fn any_setting_can_be_in_a_file_without_the_end_of_its_line() {
        let settings = settings(&[
            ("RABBITMQ_URL_FILE", b"amqp://trawl:s3cret@mq/%2f\n"),
            ("REDIS_URL_FILE", b"redis://:s3cret@r:1/2\r\n"),
            ("TRAWL__RABBITMQ__KEY_FILE", KEY),
            ("TRAWL__WORKER__CONCURRENCY_FILE", b"7"),
            ("TRAWL__API__OPERATORS__SHOP_FILE", KEY),
        ])
        .unwrap();
        assert_eq!(settings.rabbitmq.url.reveal(), "amqp://trawl:s3cret@mq/%2f");
        assert_eq!(settings.redis.url.reveal(), "redis://:s3cret@r:1/2");
        assert_eq!(settings.worker.concurrency, 7);
        assert_eq!(settings.api.operators.first_key_value().unwrap().0.as_str(), "shop");
        let shown = toml::to_string(&settings).unwrap();
        assert!(
            settings.rabbitmq.key.is_some() && !shown.contains("s3cret") && !shown.contains("0123"),
            "{shown}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_a_value_is_an_error_that_names_the_variable_and_the_file() {
        let wrong: [(&str, &[u8], &str); 5] = [
            ("REDIS_URL_FILE=", b"/nowhere/redis", "REDIS_URL_FILE: /nowhere/redis: No such file"),
            ("REDIS_URL_FILE=", b"/", "REDIS_URL_FILE: /: is no file"),
            ("TRAWL__RABBITMQ__KEY_FILE", b"\xff", "TRAWL__RABBITMQ__KEY_FILE: is not UTF-8"),
            ("TRAWL__RABBITMQ__KEY_FILE", b"\n", "TRAWL__RABBITMQ__KEY_FILE is empty"),
            ("TRAWL__RABBITMQ__KEY_FILE", &[b'a'; 65 << 10], "is larger than 64 KB"),
        ];
        for (name, text, expected) in wrong {
            let shown = settings(&[(name, text)]).unwrap_err();
            assert!(shown.contains(expected) && shown.contains(name.trim_end_matches('=')), "{shown}");
        }
    }

    #[test]
    fn a_value_and_a_file_with_one_cannot_both_be_set() {
        let shown =
            settings(&[("REDIS_URL_FILE", b"redis://a/"), ("REDIS_URL=", b"redis://b/")]).unwrap_err();
        assert!(shown.contains("REDIS_URL_FILE: REDIS_URL is set as well"), "{shown}");
        // Compose passes on an unset variable as an empty one.
        let both = [("REDIS_URL_FILE", b"redis://a/".as_slice()), ("REDIS_URL=", b"")];
        assert_eq!(settings(&both).unwrap().redis.url.reveal(), "redis://a/");
        let none = [("REDIS_URL_FILE=", b"".as_slice()), ("REDIS_URL=", b"redis://b/")];
        assert_eq!(settings(&none).unwrap().redis.url.reveal(), "redis://b/");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_reported_under_its_variable_and_without_the_secret() {
        let shown = settings(&[("TRAWL__RABBITMQ__KEY_FILE", b"s3cret"), ("REDIS_URL_FILE", b"s3cret")]);
        let shown = shown.unwrap_err();
        assert!(shown.contains("TRAWL__RABBITMQ__KEY_FILE: rabbitmq.key: "), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
        let shown = settings(&[("REDIS_URL_FILE", b"s3cret")]).unwrap_err();
        assert!(
            shown.contains("REDIS_URL_FILE: redis.url: write redis://") && !shown.contains("s3cret"),
            "{shown}"
        );
    }

    #[test]
    fn the_variable_of_a_setting_that_is_a_file_sets_the_file() {
        let settings = settings(&[("TRAWL__SECRETS__KEY_FILE=", b"/run/secrets/key")]).unwrap();
        assert_eq!(settings.secrets.key_file, Some("/run/secrets/key".into()));
    }

    #[test]
    fn other_variables_that_end_alike_are_none_of_ours() {
        assert_eq!(settings(&[("SSL_CERT_FILE=", b"/nowhere")]).unwrap(), Settings::default());
    }
}
