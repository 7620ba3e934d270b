//! The pages of a site, drawn from a seed so that a run can be repeated.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fate::Fate;

/// One page in this number is a redirect.
const REDIRECTS: usize = 24;

/// A page of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its answer.
    pub fate: Fate,
    /// The numbers of the pages that it links to.
    pub links: Vec<usize>,
}

impl Leaf {
    fn new(fate: Fate) -> Self {
        Self { fate, links: Vec::new() }
    }

    /// Whether it eventually shows its links.
    fn shows(&self) -> bool {
        matches!(self.fate, Fate::Good | Fate::Flaky(_))
    }
}

/// A site to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its pages.
    pub leaves: Vec<Leaf>,
    /// Whether sitemaps name all pages. If not, only page 0 is known, and links and redirects lead to the others.
    pub is_listed: bool,
}

impl Layout {
    /// Returns a site whose sitemaps name every page.
    pub fn listed(pages: usize, seed: u64) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        let leaves = (0..pages).map(|_| Leaf::new(draw(&mut chance))).collect();
        Self { leaves, is_listed: true }
    }

    /// Returns a site of several levels behind page 0. Many pages are linked from several others, and link back; some
    /// never answer. A third of the redirects leads to a page that is linked too, a third to one that is not, and a
    /// third to one by way of another redirect. A level has about `level` pages: a crawl always has about that many
    /// links ahead.
    pub fn linked(pages: usize, seed: u64, level: usize) -> Self {
        let redirects = pages / REDIRECTS;
        let linked = pages - redirects / 3 * 2;
        let (mut leaves, mut chance) = unlinked(linked, seed);
        // Among the first pages, as each takes several times as long as a page may take.
        for silent in leaves.iter_mut().skip(2).step_by(3).take(3) {
            silent.fate = Fate::Silent;
        }
        let good: Vec<usize> = (0..linked).filter(|page| leaves[*page].fate == Fate::Good).collect();
        let any_good = |chance: &mut StdRng| good[chance.random_range(0..good.len())];
        let mut from = Vec::new();
        while from.len() < redirects / 3 * 3 {
            let page = chance.random_range(1..linked);
            if leaves[page].fate == Fate::Good && !from.contains(&page) {
                from.push(page);
            }
        }
        // The target of a redirect must not redirect, except for those in between.
        let to = |chance: &mut StdRng| loop {
            let page = any_good(chance);
            if !from.contains(&page) {
                break page;
            }
        };
        for three in from.chunks(3) {
            let end = to(&mut chance);
            leaves[three[0]].fate = Fate::Redirect(end);
            leaves[three[1]].fate = Fate::Redirect(leaves.len());
            leaves.push(Leaf { fate: Fate::Good, links: vec![0] });
            leaves[three[2]].fate = Fate::Redirect(leaves.len());
            leaves.push(Leaf::new(Fate::Redirect(to(&mut chance))));
        }
        link(&mut leaves, linked, level, &mut chance);
        Self { leaves, is_listed: false }
    }

    /// Returns a site of linked tasks in levels, one of which never answers if `is_listed`; then lists name all of them
    /// as well.
    pub fn of_tasks(pages: usize, seed: u64, level: usize, is_listed: bool) -> Self {
        let (mut leaves, mut chance) = unlinked(pages, seed);
        if is_listed {
            leaves[2].fate = Fate::Silent;
        }
        link(&mut leaves, pages, level, &mut chance);
        Self { leaves, is_listed }
    }

    /// Returns a site of linked requests in levels. Some redirect to pages that are also requested directly.
    pub fn of_requests(pages: usize, seed: u64, level: usize) -> Self {
        let (mut leaves, mut chance) = unlinked(pages, seed);
        let good: Vec<usize> = (0..pages).filter(|page| leaves[*page].fate == Fate::Good).collect();
        let (to, from) = good.split_at(good.len() / 2);
        for page in from.iter().step_by(REDIRECTS / 4) {
            leaves[*page].fate = Fate::Redirect(to[chance.random_range(0..to.len())]);
        }
        link(&mut leaves, pages, level, &mut chance);
        Self { leaves, is_listed: false }
    }
}

/// Returns pages without links, of which the first is good.
fn unlinked(pages: usize, seed: u64) -> (Vec<Leaf>, StdRng) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut leaves: Vec<Leaf> = (0..pages).map(|_| Leaf::new(draw(&mut chance))).collect();
    leaves[0].fate = Fate::Good;
    (leaves, chance)
}

/// Links each of the first `linked` pages from one of a level above, and adds some more links to pages that show
/// theirs.
fn link(leaves: &mut [Leaf], linked: usize, level: usize, chance: &mut StdRng) {
    for page in 1..linked {
        let before = 0..=page.saturating_sub(level);
        let parent = before.rev().find(|parent| leaves[*parent].shows()).unwrap_or_default();
        leaves[parent].links.push(page);
        if leaves[page].shows() {
            let popular = chance.random_range(0..linked.min(10));
            let any = chance.random_range(0..linked.min(page + level));
            leaves[page].links.extend([0, popular, any]);
        }
    }
}

/// Draws the fate of most pages.
fn draw(chance: &mut StdRng) -> Fate {
    match chance.random_range(0..100) {
        0..4 => Fate::Missing,
        4..7 => Fate::Flaky(1),
        7..8 => Fate::Flaky(2),
        8..10 => Fate::Broken,
        _ => Fate::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_redirects_lead_to_every_page_over_several_levels() {
        for seed in 1..20 {
            let Layout { leaves, .. } = Layout::linked(300, seed, 32);
            assert_eq!(leaves.len(), 300);
            let mut levels = vec![None; leaves.len()];
            levels[0] = Some(0);
            let mut known = vec![0];
            let mut next = 0;
            while let Some(&page) = known.get(next) {
                let leaf = &leaves[page];
                let redirect = if let Fate::Redirect(to) = leaf.fate { Some(to) } else { None };
                let shown = leaf.links.iter().filter(|_| leaf.shows()).copied();
                for link in shown.chain(redirect) {
                    if levels[link].is_none() {
                        levels[link] = levels[page].map(|level: usize| level + 1);
                        known.push(link);
                    }
                }
                next += 1;
            }
            assert!(levels.iter().all(Option::is_some), "seed {seed}");
            assert!(levels.iter().max() > Some(&Some(3)), "seed {seed}");
            let count = |is: fn(&Fate) -> bool| leaves.iter().filter(|leaf| is(&leaf.fate)).count();
            assert_eq!(count(|fate| *fate == Fate::Silent), 3);
            assert_eq!(count(|fate| matches!(fate, Fate::Redirect(_))), 16);
        }
    }
}
