//! The URLs that belong to a spider, and the links that it follows. Pure: checked before the frontier is asked
//! about a URL.

use regex::RegexSet;

use super::{Follow, Spider, domains, pattern};
use crate::frontier::limit::Limit;
use crate::mistake::Mistake;
use crate::web::url::CanonicalUrl;

/// The bounds of a spider, compiled.
#[derive(Clone, Debug)]
pub struct Scope {
    domains: Vec<String>,
    follow: Option<Bounds>,
}

/// The decision about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkVerdict {
    /// Follow it.
    Follow,
    /// It leads to a domain outside the spider's.
    Elsewhere,
    /// `include` and `exclude` do not want it, or the spider follows no links.
    Unwanted,
    /// Only this limit keeps it from being followed.
    Beyond(Limit),
}

impl LinkVerdict {
    /// Returns why the link is not followed: `domain`, `pattern`, or the limit that it exceeds; `None` if it is.
    pub fn why_not(self) -> Option<&'static str> {
        match self {
            Self::Follow => None,
            Self::Elsewhere => Some("domain"),
            Self::Unwanted => Some("pattern"),
            Self::Beyond(limit) => Some(limit.as_str()),
        }
    }
}

#[derive(Clone, Debug)]
struct Bounds {
    include: RegexSet,
    exclude: RegexSet,
    depth: u16,
    max_repeats: usize,
}

impl Scope {
    /// Compiles the scope of a spider. Fails with the invalid patterns. If a program reads the pages and the
    /// spider sets no rules, every link that the program names is followed within the spider's domains, at any
    /// depth.
    pub fn new(spider: &Spider) -> Result<Self, Vec<Mistake>> {
        let all = Follow { depth: u16::MAX, max_repeats: u8::MAX, ..Follow::default() };
        let named = || spider.page_handler().map(|_| all);
        let has_links = !spider.paginate.is_empty() || spider.pages.iter().any(|kind| kind.follow.is_some());
        let of_pages = || has_links.then(Follow::default);
        let bounds =
            spider.follow.clone().or_else(named).or_else(of_pages).as_ref().map(Bounds::new).transpose()?;
        let domains = spider.allowed_domains.iter().map(|domain| domain.to_ascii_lowercase()).collect();
        Ok(Self { domains, follow: bounds })
    }

    /// Returns whether a URL is within the spider's domains; with none, or `*`, every URL is.
    pub fn takes(&self, url: &CanonicalUrl) -> bool {
        domains::allow(&self.domains, &url.host())
    }

    /// Decides about a link from `page` to `link`, which is `depth` links from the start. If the spider has no
    /// domains, a link is followed within the page's own host, with or without `www.`.
    pub fn verdict(&self, page: &CanonicalUrl, link: &CanonicalUrl, depth: u16) -> LinkVerdict {
        let Some(bounds) = &self.follow else { return LinkVerdict::Unwanted };
        let is_near = if self.domains.is_empty() { is_same_host(page, link) } else { self.takes(link) };
        if is_near { bounds.verdict(link, depth) } else { LinkVerdict::Elsewhere }
    }

    /// Returns whether the link is followed, by [`Scope::verdict`].
    pub fn follows(&self, page: &CanonicalUrl, link: &CanonicalUrl, depth: u16) -> bool {
        self.verdict(page, link, depth) == LinkVerdict::Follow
    }
}

impl Bounds {
    fn new(follow: &Follow) -> Result<Self, Vec<Mistake>> {
        let include = pattern::all("follow.include", &follow.include);
        let exclude = pattern::all("follow.exclude", &follow.exclude);
        match (include, exclude) {
            (Ok(include), Ok(exclude)) => Ok(Self {
                include,
                exclude,
                depth: follow.depth,
                max_repeats: usize::from(follow.max_repeats),
            }),
            (include, exclude) => Err(include.err().into_iter().chain(exclude.err()).flatten().collect()),
        }
    }

    fn verdict(&self, link: &CanonicalUrl, depth: u16) -> LinkVerdict {
        let is_included = self.include.is_empty() || self.include.is_match(link.as_str());
        if !is_included || self.exclude.is_match(link.as_str()) {
            LinkVerdict::Unwanted
        } else if depth > self.depth {
            LinkVerdict::Beyond(Limit::Depth)
        } else if most_repeats(link) > self.max_repeats {
            LinkVerdict::Beyond(Limit::MaxRepeats)
        } else {
            LinkVerdict::Follow
        }
    }
}

fn is_same_host(page: &CanonicalUrl, link: &CanonicalUrl) -> bool {
    let (page, link) = (page.host(), link.host());
    let bare = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
    bare(page.as_str()) == bare(link.as_str())
}

/// Returns the number of occurrences of the most frequent segment of a path. It grows if a site links to itself in
/// circles.
fn most_repeats(url: &CanonicalUrl) -> usize {
    let rest = url.as_str().splitn(4, '/').nth(3).unwrap_or_default();
    let path = rest.split('?').next().unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.sort_unstable();
    parts.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mistake::Sited;
    use crate::names::SpiderName;
    use crate::settings::Items;

    fn spider(domains: &[&str], follow: Follow) -> Spider {
        Spider {
            allowed_domains: domains.iter().map(ToString::to_string).collect(),
            follow: Some(follow),
            ..Spider::without_file(SpiderName::default(), &Items::default())
        }
    }

    fn url(text: &str) -> CanonicalUrl {
        text.parse().unwrap()
    }

    fn follows(spider: &Spider, page: &str, link: &str) -> bool {
        Scope::new(spider).unwrap().follows(&url(page), &url(link), 1)
    }

    #[test]
    fn with_domains_named_links_within_them_are_followed_from_wherever() {
        let spider = spider(&["Example.com"], Follow::default());
        assert!(follows(&spider, "http://elsewhere.example/", "http://shop.example.com/a"));
        assert!(!follows(&spider, "http://example.com/", "http://badexample.com/"));
        assert!(follows(&self::spider(&["*"], Follow::default()), "http://a.example/", "http://b.example/"));
    }

    #[test]
    fn with_none_named_links_are_followed_to_the_pages_own_host() {
        let spider = spider(&[], Follow::default());
        assert!(follows(&spider, "http://example.com/", "https://www.example.com/a"));
        assert!(follows(&spider, "http://www.example.com:8080/", "http://example.com/"));
        assert!(!follows(&spider, "http://example.com/", "http://blog.example.com/"));
        assert!(Scope::new(&spider).unwrap().takes(&url("http://anywhere.example/")));
    }

    #[test]
    fn patterns_are_searched_in_the_url_and_exclusion_wins() {
        let patterns = |list: &[&str]| list.iter().map(|text| Sited::nowhere(*text)).collect::<Vec<_>>();
        let follow = Follow {
            include: patterns(&["/product/", "[?&]page=\\d+"]),
            exclude: patterns(&["[?&]sort="]),
            ..Follow::default()
        };
        let spider = spider(&[], follow);
        let follows = |path: &str| follows(&spider, "http://a.example/", &format!("http://a.example{path}"));
        assert!(follows("/product/1") && follows("/list?page=2"));
        assert!(!follows("/about") && !follows("/product/1?sort=up"));
    }

    #[test]
    fn depth_and_repetition_are_bounded() {
        let spider = spider(&[], Follow { depth: 2, max_repeats: 2, ..Follow::default() });
        let scope = Scope::new(&spider).unwrap();
        let link = |path: &str, depth| {
            scope.verdict(&url("http://a.example/"), &url(&format!("http://a.example{path}")), depth)
        };
        let beyond = LinkVerdict::Beyond;
        assert_eq!([link("/x", 2), link("/x", 3)], [LinkVerdict::Follow, beyond(Limit::Depth)]);
        let repeats = [link("/x/y/x", 1), link("/x/y/x/y/x/", 1), link("/y?x/x/x/x", 1)];
        assert_eq!(repeats, [LinkVerdict::Follow, beyond(Limit::MaxRepeats), LinkVerdict::Follow]);
    }

    #[test]
    fn what_is_not_wanted_is_beyond_no_limit() {
        let exclude = vec![Sited::nowhere("/x")];
        let scope = Scope::new(&spider(&[], Follow { exclude, depth: 0, ..Follow::default() })).unwrap();
        let link = |text: &str| scope.verdict(&url("http://a.example/"), &url(text), 1);
        assert_eq!(link("http://a.example/x"), LinkVerdict::Unwanted);
        assert_eq!(link("http://b.example/y"), LinkVerdict::Elsewhere);
        assert_eq!(link("http://a.example/y"), LinkVerdict::Beyond(Limit::Depth));
    }

    #[test]
    fn every_pattern_that_is_none_is_named_where_it_stands() {
        let place = Some(crate::mistake::Place { line: 3, column: 9 });
        let bad = |text: &str| Sited { value: text.to_owned(), place };
        let follow = Follow {
            include: vec![bad("("), Sited::nowhere("fine")],
            exclude: vec![bad("[z-a]")],
            ..Follow::default()
        };
        let mistakes = Scope::new(&spider(&[], follow)).unwrap_err();
        let message: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(mistakes.len(), 2, "{message:?}");
        assert!(
            message[0].starts_with("follow.include: ") && message[1].starts_with("follow.exclude: "),
            "{message:?}"
        );
        assert!(mistakes.iter().all(|mistake| mistake.place == place));
    }
}
