//! `[[webhooks]]`: URLs that events are posted to.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::ServerUrl;
use super::masked::masked;
use crate::events::Pattern;
use crate::names::SpiderName;

/// Minimum length of a secret; shorter ones could be guessed.
const MIN_SECRET: usize = 32;

/// One `[[webhooks]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// The URL to post events to.
    pub url: ServerUrl,
    /// The secret that signs them.
    pub secret: WebhookSecret,
    /// The events to post.
    #[serde(default = "Pattern::of_crawls")]
    pub events: Vec<Pattern>,
    /// The spiders whose events are posted; all if empty.
    #[serde(default)]
    pub spiders: Vec<SpiderName>,
}

impl Webhook {
    /// Returns whether an event of this name is to be posted, of a crawl of this spider or of no crawl.
    pub fn wants(&self, name: &str, spider: Option<&str>) -> bool {
        let is_of = |wanted: &SpiderName| Some(wanted.as_str()) == spider;
        self.events.iter().any(|pattern| pattern.fits(name))
            && (self.spiders.is_empty() || self.spiders.iter().any(is_of))
    }
}

/// The secret that signs a webhook's deliveries: a text, or the environment variable that has it. Shown, logged
/// and serialised as `***`.
#[derive(Clone, PartialEq, Eq)]
pub enum WebhookSecret {
    /// The secret itself.
    Text(Arc<str>),
    /// The name of the variable that has it on the machine that makes the deliveries.
    Variable(Arc<str>),
}

/// The reason why there is no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// It is so short that it could be guessed.
    #[error(
        "the secret of a webhook has at least {MIN_SECRET} characters: `openssl rand -hex 32` prints one"
    )]
    Short,
    /// There is no such variable.
    #[error("there is no environment variable {0}")]
    Missing(Arc<str>),
}

impl WebhookSecret {
    /// Returns the secret itself, only for signing. A variable is read from `env`.
    pub fn reveal(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, NoSecret> {
        let text = match self {
            Self::Text(text) => text.to_string(),
            Self::Variable(name) => env(name).ok_or_else(|| NoSecret::Missing(Arc::clone(name)))?,
        };
        long_enough(&text).map(str::to_owned)
    }
}

fn long_enough(text: &str) -> Result<&str, NoSecret> {
    Some(text.trim()).filter(|text| text.len() >= MIN_SECRET).ok_or(NoSecret::Short)
}

masked!(WebhookSecret);

impl<'de> Deserialize<'de> for WebhookSecret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = WebhookSecret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes, or { env = \"NAME\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WebhookSecret, E> {
        long_enough(text).map(|text| WebhookSecret::Text(text.into())).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WebhookSecret, A::Error> {
        let mut name = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "env" => name = Some(map.next_value::<String>()?),
                other => return Err(A::Error::unknown_field(other, &["env"])),
            }
        }
        name.map(|name| WebhookSecret::Variable(name.into())).ok_or_else(|| A::Error::missing_field("env"))
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::{Settings, Source};

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn settings(text: &str) -> Result<Settings, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let source = Source { file: Some(file.path().to_owned()), ..Source::default() };
        source.load().map_err(|invalid| invalid.to_string())
    }

    fn webhook(more: &str) -> Result<Webhook, String> {
        let text = format!("[[webhooks]]\nurl = \"https://shop.example/hook\"\n{more}");
        settings(&text).map(|mut settings| settings.webhooks.remove(0))
    }

    #[test]
    fn a_secret_is_a_text_or_in_a_variable_and_shows_nowhere() {
        let text = webhook(&format!("secret = '{SECRET}'")).unwrap();
        let variable = webhook("secret = { env = 'HOOK' }").unwrap();
        let env = |name: &str| (name == "HOOK").then(|| format!("{SECRET}\n"));
        for webhook in [text, variable] {
            assert_eq!(webhook.secret.reveal(env).unwrap(), SECRET);
            let shown = format!("{webhook:?} {}", serde_json::to_string(&webhook).unwrap());
            assert!(!shown.contains("0123"), "{shown}");
        }
    }

    #[test]
    fn a_secret_that_is_missing_or_could_be_guessed_is_an_error_that_does_not_repeat_it() {
        for (wrong, why) in [
            ("", "secret"),
            ("secret = '0123'", "openssl rand"),
            ("secret = { var = 'X' }", "there is no key"),
        ] {
            let shown = webhook(wrong).unwrap_err();
            assert!(shown.contains(why) && !shown.contains("0123"), "{shown}");
        }
        let secret = webhook("secret = { env = 'HOOK' }").unwrap().secret;
        assert!(secret.reveal(|_| None).unwrap_err().to_string().contains("HOOK"));
        assert_eq!(secret.reveal(|_| Some("0123".to_owned())), Err(NoSecret::Short));
    }

    #[test]
    fn a_webhook_gets_the_events_of_crawls_of_every_spider_or_those_that_it_names() {
        let all = webhook(&format!("secret = '{SECRET}'")).unwrap();
        assert!(all.wants("crawl.finished", Some("docs")) && !all.wants("host.blocked", None));
        let some = webhook(&format!("secret = '{SECRET}'\nevents = ['crawl.finished']\nspiders = ['docs']"));
        let some = some.unwrap();
        assert!(some.wants("crawl.finished", Some("docs")));
        assert!(!some.wants("crawl.started", Some("docs")) && !some.wants("crawl.finished", Some("shop")));
        assert!(!some.wants("crawl.finished", None));
    }

    #[test]
    fn events_are_posted_to_addresses_of_the_web_alone_and_to_each_once() {
        let hook = |url: &str| format!("[[webhooks]]\nurl = \"{url}\"\nsecret = \"{SECRET}\"\n");
        let shown = settings(&hook("amqp://mq/")).unwrap_err();
        assert!(shown.contains("webhooks") && shown.contains("https://"), "{shown}");
        let twice = hook("http://a.example/hook").repeat(2);
        assert!(settings(&twice).unwrap_err().contains("twice"));
    }
}
