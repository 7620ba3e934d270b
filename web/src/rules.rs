//! Applies a spider's rules to a response, for workers and trials alike: a ban, or a redirect to follow.

use bytes::Bytes;
use trawl_common::frontier::outcome::Failure;
use trawl_common::spider::page_history::Validators;
use trawl_common::spider::{Bans, Scope};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use super::answer::Answer;
use super::fetcher::Fetcher;
use super::redirect::{MAX_REDIRECTS, Redirect, Trail};
use super::time_limit::within;

/// The reason why a spider gets no page for a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPage {
    /// The fetch failed, or the response is a ban.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A redirect leads out of the spider's domains.
    #[error("redirected to {0}, which is not within the spider's domains")]
    OutOfScope(CanonicalUrl),
    /// The response has this content type, which is no text.
    #[error("{0} is skipped: only a request with `any_status` gives the program of a spider what is no text")]
    Unread(String),
}

/// Returns the ban if the response is one by a spider's rules. A response that asks for a back-off anyway is not a ban.
pub fn ban(bans: &Bans, answer: &Result<Answer, Failure>) -> Option<Failure> {
    match answer {
        Ok(Answer::Page(response)) => bans.by_page(response),
        Ok(Answer::Redirect(to)) => bans.by_redirect(&to.target),
        Ok(Answer::Unread { status, .. }) => bans.by_status(*status),
        Ok(Answer::NotModified) => None,
        Err(failure) if failure.is_refusal() => None,
        Err(failure) => {
            let ban = bans.by_status(failure.status?)?;
            Some(Failure { retry_after: failure.retry_after, ..ban })
        }
    }
}

impl Trail {
    /// Follows a redirect, if its target is within a spider's domains.
    ///
    /// # Errors
    /// Fails first with the errors of [`Trail::go`].
    pub fn follow(&mut self, to: impl Into<Redirect>, scope: &Scope) -> Result<(), NoPage> {
        let to = to.into();
        let (is_in_scope, target) = (scope.takes(&to.target), to.target.clone());
        self.go(to)?;
        if is_in_scope { Ok(()) } else { Err(NoPage::OutOfScope(target)) }
    }
}

impl Fetcher {
    /// Requests `url` and follows its redirects, all within `fetch.timeout`. The body is left empty if the spider does
    /// not read its content type.
    ///
    /// # Errors
    /// Returns the reason why there is no page.
    pub async fn fetch(&self, url: &CanonicalUrl) -> Result<Response, Failure> {
        self.page(url, |answer, trail| match answer {
            Ok(Answer::Redirect(to)) => trail.go(to.clone()),
            _ => Ok(()),
        })
        .await
    }

    /// Like [`fetch`](Self::fetch), but applies the rules of a spider, and has no page without a body.
    ///
    /// # Errors
    /// Returns the reason why the spider has no page.
    pub async fn fetch_for(
        &self,
        url: &CanonicalUrl,
        scope: &Scope,
        bans: &Bans,
    ) -> Result<Response, NoPage> {
        self.page(url, |answer, trail| match (ban(bans, answer), answer) {
            (Some(ban), _) => Err(ban.into()),
            (None, Ok(Answer::Redirect(to))) => trail.follow(to.clone(), scope),
            (None, Ok(Answer::Unread { content_type, .. })) => Err(NoPage::Unread(content_type.clone())),
            (None, _) => Ok(()),
        })
        .await
    }

    /// Returns the page to which the redirects of `url` lead; `look` receives each response, and follows or rejects its
    /// redirect.
    async fn page<E: From<Failure>>(
        &self,
        url: &CanonicalUrl,
        look: impl Fn(&Result<Answer, Failure>, &mut Trail) -> Result<(), E>,
    ) -> Result<Response, E> {
        within(self.settings.timeout, async {
            let mut trail = Trail::new(url.clone(), MAX_REDIRECTS);
            let page = loop {
                let answer = self.ask(trail.last(), &Validators::default()).await;
                look(&answer, &mut trail)?;
                match answer? {
                    Answer::NotModified => unreachable!("it was not asked whether it has changed"),
                    Answer::Redirect(_) => {}
                    Answer::Page(page) => break page,
                    Answer::Unread { status, content_type } => {
                        break Response {
                            status,
                            headers: Headers::from_iter([("content-type", content_type)]),
                            redirected_to: None,
                            fetched_at: UnixMs::now(),
                            address: None,
                            body: Bytes::new(),
                        };
                    }
                }
            };
            Ok(Response { redirected_to: trail.into_target(), ..page })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::names::SpiderName;
    use trawl_common::settings::Items;
    use trawl_common::spider::Spider;

    use super::*;

    fn url(path: &str) -> CanonicalUrl {
        format!("http://a.example/{path}").parse().unwrap()
    }

    #[test]
    fn a_trail_that_a_message_carried_goes_on_by_the_rule_of_one_that_it_did_not() {
        let mut whole = Trail::new(url("0"), 3);
        for number in 1..=3 {
            let mut carried = Trail::at(url("0"), whole.clone().into_hop(), 3);
            for back in [url("0"), whole.last().clone()] {
                assert_eq!(carried.clone().go(back.clone()), whole.clone().go(back));
            }
            let next = url(&number.to_string());
            assert_eq!((carried.go(next.clone()), whole.go(next)), (Ok(()), Ok(())));
            assert_eq!(carried, whole);
        }
        assert!(whole.go(url("4")).unwrap_err().to_string().contains("more than 3 redirects"));
    }

    #[test]
    fn a_redirect_out_of_a_spiders_domains_is_not_followed() {
        let any = Spider::without_file(SpiderName::default(), &Items::default());
        let spider = Spider { allowed_domains: vec!["a.example".to_owned()], ..any };
        let scope = Scope::new(&spider).unwrap();
        let mut trail = Trail::new(url("0"), 3);
        assert_eq!(trail.follow(url("1"), &scope), Ok(()));
        let elsewhere: CanonicalUrl = "http://b.example/".parse().unwrap();
        assert_eq!(trail.follow(elsewhere.clone(), &scope), Err(NoPage::OutOfScope(elsewhere)));
    }
}
