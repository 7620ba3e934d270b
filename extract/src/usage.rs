//! The uses of a page that its publisher allows or reserves.
//!
//! Read are the header fields `Content-Usage` (draft-ietf-aipref-attach) and `Content-Signal` (contentsignals.org),
//! `noai` and `noimageai` among the directives for robots, and the TDM Reservation Protocol (W3C Community Group report
//! of 2024), whose file `tdmrep.json` is not asked for.

use serde_json::{Map, Value};
use trawl_common::web::response::Response;

use crate::document::page::Metas;
use crate::document::robots_directives::robots_directives;

/// The key of the policy that tells how a reserved text may be mined.
const POLICY: &str = "tdm-policy";

/// Names that mean a use of another name.
const ALIASES: [(&str, &str); 4] = [
    ("ai-train", "train-ai"),
    ("noai", "train-ai"),
    ("noimageai", "train-ai-images"),
    ("tdm-reservation", "tdm"),
];

/// Returns whether each use is allowed, as far as the page says, and its policy for mining. Of several sayings, one that
/// reserves counts.
pub(crate) fn usage(response: &Response, metas: &Metas, robots_name: &str) -> Map<String, Value> {
    let mut usage = Usage::default();
    let fields = |name| response.headers.all(name);
    for (name, value) in fields("content-usage").chain(fields("content-signal")).flat_map(pairs) {
        usage.say(name, is_yes(value));
    }
    for directive in robots_directives(response, metas, robots_name) {
        if directive.eq_ignore_ascii_case("noai") || directive.eq_ignore_ascii_case("noimageai") {
            usage.say(directive, Some(false));
        }
    }
    let reserved = fields("tdm-reservation").chain(metas.tdm_reservation.as_deref());
    reserved.for_each(|value| usage.say("tdm-reservation", may_mine(value)));
    if let Some(policy) = fields(POLICY).chain(metas.tdm_policy.as_deref()).next() {
        usage.0.insert(POLICY.to_owned(), policy.trim().into());
    }
    usage.0
}

/// Returns whether a page reserves one of these uses.
pub(crate) fn reserves(response: &Response, metas: &Metas, robots_name: &str, uses: &[String]) -> bool {
    if uses.is_empty() {
        return false;
    }
    let usage = usage(response, metas, robots_name);
    uses.iter().any(|one| usage.get(one) == Some(&Value::Bool(false)))
}

#[derive(Default)]
struct Usage(Map<String, Value>);

impl Usage {
    /// Notes whether a use is allowed, if that is said.
    fn say(&mut self, name: &str, is_allowed: Option<bool>) {
        let Some(is_allowed) = is_allowed else { return };
        let name = name.to_ascii_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let said = self.0.entry(alias.map_or(name, |(_, name)| (*name).to_owned())).or_insert(true.into());
        *said = Value::Bool(is_allowed && *said == Value::Bool(true));
    }
}

/// Returns the names and values of a list such as `train-ai=n, search=y`, without parameters.
fn pairs(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let members = list.split(',').map(|member| member.split(';').next().unwrap_or_default());
    members.filter_map(|member| member.split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}

fn is_yes(value: &str) -> Option<bool> {
    match value.trim_matches('"').to_ascii_lowercase().as_str() {
        "y" | "yes" | "?1" => Some(true),
        "n" | "no" | "?0" => Some(false),
        _ => None,
    }
}

/// Returns whether mining is allowed: `1` reserves it.
fn may_mine(value: &str) -> Option<bool> {
    match value.trim() {
        "1" => Some(false),
        "0" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_that_anybody_reserves_is_reserved() {
        let mut usage = Usage::default();
        for (name, value) in pairs("train-ai=n;x=1, search=y, odd=perhaps, search")
            .chain(pairs("ai-train=yes, AI-Input=\"no\""))
        {
            usage.say(name, is_yes(value));
        }
        let expected = serde_json::json!({"train-ai": false, "search": true, "ai-input": false});
        assert_eq!(Value::Object(usage.0), expected);
    }
}
