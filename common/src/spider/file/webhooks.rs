//! `[[webhooks]]`

use url::Url;

use super::given::Given;
use super::placeholders;
use super::secret::variable;
use super::section::Section;
use crate::events::Pattern;
use crate::settings::{ServerUrl, Webhook, WebhookSecret};

/// Maximum number of webhooks of a file: each event of a crawl is posted to all of them.
const MAX_WEBHOOKS: usize = 8;

/// Reads the webhooks for events of the spider's crawls.
pub(super) fn webhooks(given: &Given<'_>) -> Vec<Webhook> {
    let all = given.all(|given| Section::from_given(given).and_then(webhook)).unwrap_or_default();
    let is_twice = |(at, webhook): (usize, &Webhook)| all[..at].iter().any(|other| other.url == webhook.url);
    if all.iter().enumerate().any(is_twice) {
        given.wrong::<()>("the same `url` is there twice: name all of its events in one place");
    }
    if all.len() > MAX_WEBHOOKS {
        given.wrong::<()>(format_args!("at most {MAX_WEBHOOKS} of them"));
    }
    all
}

fn webhook(mut section: Section<'_>) -> Option<Webhook> {
    let url = section.need("url", address);
    let secret = section.need("secret", secret);
    let events = section.get("events").map(|given| given.all(Given::parsed::<Pattern>).unwrap_or_default());
    section.end();
    let events = events.unwrap_or_else(Pattern::of_crawls);
    Some(Webhook { url: url?, secret: secret?, events, spiders: Vec::new() })
}

/// Reads the URL. No argument may choose it, and readers of the file must not learn a password from it.
pub(super) fn address(given: &Given<'_>) -> Option<ServerUrl> {
    let text = given.verbatim()?;
    if placeholders::is_in(text) {
        return given.wrong("no argument may say where trawl posts to");
    }
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        None => given.wrong("write https://host/path"),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            given.wrong("has a user or a password: the file is read by others")
        }
        Some(_) => Some(ServerUrl::new(text)),
    }
}

/// Reads the name of the secret's variable. The value is read where deliveries are made, so other programs do not
/// need it.
pub(super) fn secret(given: &Given<'_>) -> Option<WebhookSecret> {
    if !given.is_table() {
        return given.wrong("write { env = \"NAME\" }: the file is read by others");
    }
    let mut section = Section::from_given(given)?;
    let name = section.need("env", variable);
    section.end();
    name.map(|(_, name)| WebhookSecret::Variable(name.into()))
}

#[cfg(test)]
mod tests {
    use crate::settings::{Items, Webhook};
    use crate::spider::file::read;
    use crate::spider::{Origin, Spider};

    const SECRET: &str = "secret = { env = 'HOOK' }";

    /// Reads one webhook; returns the mistake if there is one.
    fn one(more: &str) -> Result<Webhook, String> {
        let usual = Spider::without_file("shop".parse().unwrap(), &Items::default());
        let ready = read(usual, &format!("[[webhooks]]\n{more}"), Origin::Local, &|_| None).ready();
        match ready {
            Ok(mut spider) => Ok(spider.webhooks.remove(0)),
            Err(mistakes) => Err(mistakes.iter().map(|mistake| mistake.to_string()).collect()),
        }
    }

    #[test]
    fn a_webhook_gets_all_events_of_crawls_or_those_that_it_names() {
        let usual = one(&format!("url = 'https://a.example/hook'\n{SECRET}")).unwrap();
        assert!(usual.wants("crawl.finished", Some("shop")) && !usual.wants("host.backoff", Some("shop")));
        let named = one(&format!("url = 'https://a.example/hook'\n{SECRET}\nevents = ['host.*']")).unwrap();
        assert!(named.wants("host.backoff", Some("shop")) && !named.wants("crawl.finished", Some("shop")));
    }

    #[test]
    fn no_secret_is_in_the_file_and_no_argument_chooses_the_address() {
        for (wrong, why) in [
            ("url = 'https://a.example/hook'", "`secret` is missing"),
            (
                "url = 'https://a.example/hook'\nsecret = '0123456789abcdef0123456789abcdef'",
                "{ env = \"NAME\" }",
            ),
            ("url = 'https://a:b@a.example/hook'\nsecret = { env = 'HOOK' }", "has a user or a password"),
            ("url = 'ftp://a.example/hook'\nsecret = { env = 'HOOK' }", "write https://host/path"),
            ("url = 'https://{arg.host}/'\nsecret = { env = 'HOOK' }", "no argument may say where"),
            ("url = 'https://a.example/'\nsecret = { env = 'HOOK' }\nspiders = ['b']", "there is no key"),
            (
                "url = 'https://a.example/'\nsecret = { env = 'HOOK' }\nevents = ['Crawl']",
                "is no name of events",
            ),
        ] {
            let error = one(wrong).unwrap_err();
            assert!(error.contains(why) && !error.contains("0123"), "{wrong}: {error}");
        }
    }

    #[test]
    fn each_address_is_named_once_and_there_are_not_too_many() {
        let hook = |number: usize| format!("url = 'https://a.example/{number}'\n{SECRET}\n");
        let some = |numbers: &[usize]| {
            numbers.iter().map(|&number| hook(number)).collect::<Vec<_>>().join("[[webhooks]]\n")
        };
        assert!(one(&some(&[1, 2])).is_ok());
        assert!(one(&some(&[1, 1])).unwrap_err().contains("twice"));
        assert!(one(&some(&[1, 2, 3, 4, 5, 6, 7, 8, 9])).unwrap_err().contains("at most 8"));
    }
}
