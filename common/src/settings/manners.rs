//! Checks of the settings: how hosts are asked, and whom the fleet trusts.

use super::Settings;
use crate::finding::Finding;
use crate::politeness::rate::Rate;

/// The subject of findings about how hosts are asked.
const MANNERS: &str = "manners";

impl Settings {
    /// Returns how hosts are asked, with a warning for each setting that may trouble them or this network.
    pub fn manners(&self) -> Vec<Finding> {
        let Self { politeness, fetch, .. } = self;
        let mut all = vec![Finding::ok(MANNERS, format_args!("hosts see `{}`", fetch.user_agent_line()))];
        if politeness.rate == Rate::Unlimited {
            let text = "there is no limit to the requests that one host gets";
            all.push(
                Finding::warning(MANNERS, text).advise("set `politeness.rate`, for instance to \"1/s\""),
            );
        }
        if !politeness.robots {
            let text = "robots.txt is not obeyed";
            all.push(Finding::warning(MANNERS, text).advise("set `politeness.robots = true`"));
        }
        all.extend(self.nameless());
        if fetch.allow_private {
            let text = "links may lead to machines of this network";
            let advice = "unset `fetch.allow_private`, or name what may be asked in `fetch.allow_networks`";
            all.push(Finding::warning(MANNERS, text).advise(advice));
        }
        all.extend(self.anonymous());
        all
    }

    /// Returns a warning if robots.txt cannot address this crawler.
    pub fn nameless(&self) -> Option<Finding> {
        let is_nameless = self.politeness.robots && self.fetch.robots_name().is_none();
        is_nameless.then(|| Finding::warning(MANNERS, NAMELESS).advise("set `fetch.robots_name`"))
    }

    /// Returns a warning if hosts cannot tell whom to write to.
    pub fn anonymous(&self) -> Option<Finding> {
        let text = "hosts cannot tell you that you trouble them";
        let advice = "set `fetch.contact` to a URL or an address";
        self.fetch.contact.is_none().then(|| Finding::warning(MANNERS, text).advise(advice))
    }

    /// Returns a warning if any client of the broker passes for trawl.
    pub fn unsigned(&self) -> Option<Finding> {
        let text = "any client of this broker passes for trawl";
        let advice = "set `rabbitmq.key`, the same for the whole fleet (docs/attacks.md)";
        self.rabbitmq.key.is_none().then(|| Finding::warning("rabbitmq", text).advise(advice))
    }
}

/// The warning for a user agent without a product name.
pub const NAMELESS: &str =
    "the user agent has no name that robots.txt could address, so the rules for `trawl` are obeyed";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Verdict;

    fn warnings(settings: &Settings) -> Vec<String> {
        let all = settings.manners().into_iter().filter(|finding| finding.verdict == Verdict::Warning);
        all.map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn each_setting_that_may_trouble_hosts_is_a_warning_with_the_way_out() {
        let mut settings = Settings::default();
        settings.fetch.contact = Some("https://crawler.example".to_owned());
        assert!(warnings(&settings).is_empty());
        settings.fetch.contact = None;
        settings.politeness.rate = Rate::Unlimited;
        settings.politeness.robots = false;
        settings.fetch.allow_private = true;
        let told = warnings(&settings);
        for key in ["politeness.rate", "politeness.robots", "fetch.allow_private", "fetch.contact"] {
            assert!(told.iter().any(|told| told.contains(key)), "{key}: {told:?}");
        }
    }
}
