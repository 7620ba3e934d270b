//! `[follow]`

use super::given::Given;
use super::patterns;
use super::section::Section;
use crate::spider::Follow;

pub(super) fn follow(mut section: Section<'_>) -> Follow {
    let usual = Follow::default();
    let mut flag = |key, usual| section.read(key, Given::flag).unwrap_or(usual);
    let (links, nofollow, noindex) =
        (flag("links", usual.links), flag("nofollow", usual.nofollow), flag("noindex", usual.noindex));
    let (canonical, refresh) = (flag("canonical", usual.canonical), flag("refresh", usual.refresh));
    let follow = Follow {
        include: section.all("include", patterns::regex),
        exclude: section.all("exclude", patterns::regex),
        area: section.read("area", patterns::elements),
        links,
        next: section.all("next", patterns::selector),
        depth: section.read("depth", |given| given.whole(0)).unwrap_or(usual.depth),
        max_per_host: section.read("max_per_host", Given::positive),
        max_repeats: section.read("max_repeats", |given| given.whole(1)).unwrap_or(usual.max_repeats),
        nofollow,
        noindex,
        canonical,
        refresh,
    };
    if !follow.links && follow.next.is_empty() && section.get("next").is_none() {
        section.wrong::<()>("follows nothing: `links` is false, and `next` names nothing");
    }
    section.end();
    follow
}
