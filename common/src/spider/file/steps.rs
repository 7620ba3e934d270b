//! `steps`: what a browser does in a page.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use super::given::Given;
use super::patterns;
use super::section::Section;
use crate::duration;
use crate::spider::{Action, Awaited, PageStep, Selector, Target};

/// Maximum number of steps.
const MAX_STEPS: usize = 50;

/// The keys of which each step has one.
const ACTIONS: [&str; 8] = ["wait", "click", "fill", "select", "press", "scroll", "evaluate", "goto"];

/// Reads steps. `is_rendered`: whether a browser may render the pages that they are for.
pub(super) fn steps(given: &Given<'_>, is_rendered: bool) -> Option<Arc<[PageStep]>> {
    // Where a spider is tried over HTTP, no browser is the first mistake.
    if !is_rendered && !given.notes.is_tried() {
        return given.wrong("are for pages that a browser renders: add `render = \"always\"`");
    }
    let all = given.list()?;
    if all.len() > MAX_STEPS {
        return given.wrong(format_args!("a page has {MAX_STEPS} steps at most"));
    }
    Some(all.iter().filter_map(step).collect())
}

fn step(given: &Given<'_>) -> Option<PageStep> {
    let mut section = Section::from_given(given)?;
    let actions: Vec<_> = ACTIONS.into_iter().filter_map(|key| Some((key, section.get(key)?))).collect();
    let [(key, value)] = actions.as_slice() else {
        return section
            .wrong(format_args!("a step has one of {}", ACTIONS.map(|key| format!("`{key}`")).join(", ")));
    };
    let with = match *key {
        "fill" | "select" => section.need("with", |given| given.text()).map(|text| text.value),
        _ => {
            section.refuse("with", "is for `fill` and `select` alone");
            None
        }
    };
    let action = match *key {
        "wait" => awaited(value).map(Action::Wait),
        "click" => target(value).map(Action::Click),
        "fill" => target(value).zip(with).map(|(target, text)| Action::Fill(target, text)),
        "select" => target(value).zip(with).map(|(target, option)| Action::Select(target, option)),
        "press" => value.variant().map(Action::Press),
        "scroll" => screens(value).map(Action::Scroll),
        "evaluate" => value.words().map(|script| Action::Evaluate(script.value)),
        _ => value.words().map(|url| Action::Goto(url.value)),
    };
    let within = section.read("within", within);
    section.end();
    Some(PageStep { action: action?, within })
}

fn awaited(given: &Given<'_>) -> Option<Awaited> {
    if given.has_key("text") {
        let mut section = Section::from_given(given)?;
        let text = section.need("text", Given::words);
        section.end();
        return Some(Awaited::Text(text?.value));
    }
    match target(given)? {
        Target::Css(text) if text.value == "rest" => Some(Awaited::Rest),
        target => Some(Awaited::Element(target)),
    }
}

fn target(given: &Given<'_>) -> Option<Target> {
    match patterns::elements(given)? {
        Selector::Text(css) => Some(Target::Css(css)),
        Selector::XPath(xpath) => Some(Target::XPath(xpath)),
        Selector::Script(..) => given.wrong("must find an element: a script has none"),
    }
}

/// Reads the number of screens.
fn screens(given: &Given<'_>) -> Option<NonZeroU16> {
    let wanted = "is a number of screens, or \"end\" for all there are";
    if given.is_number() {
        let number = given.whole(1).and_then(NonZeroU16::new)?;
        return match number <= Action::MAX_SCREENS {
            true => Some(number),
            false => given.wrong(format_args!("is {} at most", Action::MAX_SCREENS)),
        };
    }
    match given.verbatim() {
        Some("end") => Some(Action::MAX_SCREENS),
        Some(_) => given.wrong(wanted),
        None => None,
    }
}

fn within(given: &Given<'_>) -> Option<Duration> {
    match duration::parse(given.verbatim()?) {
        Ok(time) if time.is_zero() => given.wrong("must be longer than that"),
        Ok(time) if time > PageStep::MAX_WITHIN => {
            given.wrong(format_args!("must be {} at most", humantime::format_duration(PageStep::MAX_WITHIN)))
        }
        Ok(time) => Some(time),
        Err(error) => given.wrong(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mistake::{Place, Sited};
    use crate::settings::Items;
    use crate::spider::file::{Reading, read};
    use crate::spider::{Origin, PageKey, Spider};

    fn reading(text: &str) -> Reading {
        let usual = Spider::without_file("shop".parse().unwrap(), &Items::default());
        read(usual, text, Origin::Local, &|_| None)
    }

    #[test]
    fn steps_are_read_in_order() {
        let text = "render = 'always'
steps = [
    { click = 'button.ok' },
    { fill = '#q', with = 'hats' },
    { select = { xpath = '//select' }, with = 'Price' },
    { press = 'Enter' },
    { wait = '.list', within = '1m' },
    { wait = { text = 'Found' } },
    { wait = 'rest' },
    { scroll = 3 },
    { scroll = 'end' },
    { evaluate = 'document.title = \"x\"' },
    { goto = '/next' },
]";
        let spider = reading(text).ready().unwrap();
        let sited =
            |line, column, text: &str| Sited { value: text.to_owned(), place: Some(Place { line, column }) };
        let screens = NonZeroU16::new(3).unwrap();
        let actions: Vec<_> = spider.steps.iter().map(|step| step.action.clone()).collect();
        let expected = [
            Action::Click(Target::Css(sited(3, 15, "button.ok"))),
            Action::Fill(Target::Css(sited(4, 14, "#q")), "hats".to_owned()),
            Action::Select(Target::XPath(sited(5, 26, "//select")), "Price".to_owned()),
            Action::Press(PageKey::Enter),
            Action::Wait(Awaited::Element(Target::Css(sited(7, 14, ".list")))),
            Action::Wait(Awaited::Text("Found".to_owned())),
            Action::Wait(Awaited::Rest),
            Action::Scroll(screens),
            Action::Scroll(Action::MAX_SCREENS),
            Action::Evaluate("document.title = \"x\"".to_owned()),
            Action::Goto("/next".to_owned()),
        ];
        assert_eq!(actions, expected);
        let within: Vec<_> = spider.steps.iter().filter_map(|step| step.within).collect();
        assert_eq!(within, [Duration::from_secs(60)]);
    }

    #[test]
    fn a_kind_of_page_has_steps_of_its_own_or_those_of_the_spider() {
        let text = "render = 'always'\nsteps = [{ scroll = 1 }]\n[[page]]\nname = 'a'\nmatch.url = 'a'\n\
                    steps = []\n[[page]]\nname = 'b'";
        let spider = reading(text).ready().unwrap();
        let own: Vec<_> =
            spider.pages.iter().map(|kind| kind.steps.as_ref().map(|steps| steps.len())).collect();
        assert_eq!((own, spider.steps.len()), (vec![Some(0), None], 1));
    }

    #[test]
    fn a_step_that_makes_no_sense_is_refused_with_its_place() {
        for (steps, expected) in [
            ("{}", "2:10 steps: a step has one of `wait`, `click`"),
            ("{ click = 'a', press = 'Tab' }", "2:10 steps: a step has one of `wait`, `click`"),
            ("{ clck = 'a' }", "2:10 steps: a step has one of `wait`, `click`"),
            ("'rest'", "2:10 steps: a table is wanted"),
            ("{ click = '' }", "2:20 steps.click: must not be empty"),
            ("{ click = '//a' }", "2:20 steps.click: looks like XPath"),
            ("{ click = { script = 'x' } }", "2:20 steps.click: must find an element"),
            ("{ click = 'a', with = 'x' }", "2:32 steps.with: is for `fill` and `select` alone"),
            ("{ fill = '#q' }", "2:10 steps: `with` is missing"),
            ("{ press = 'Entr' }", "2:20 steps.press: there is no `Entr`: did you mean `Enter`?"),
            ("{ scroll = 0 }", "2:21 steps.scroll: must be 1 or more"),
            ("{ scroll = 201 }", "2:21 steps.scroll: is 200 at most"),
            ("{ scroll = 'down' }", "2:21 steps.scroll: is a number of screens, or \"end\""),
            ("{ wait = { txt = 'x' } }", "2:21 there is no key `steps.wait.txt`"),
            ("{ wait = 'a', within = '0s' }", "2:33 steps.within: must be longer"),
            ("{ wait = 'a', within = '10m' }", "2:33 steps.within: must be 5m at most"),
            ("{ wait = 'a', witin = '1m' }", "2:24 there is no key `steps.witin`: did you mean `within`?"),
        ] {
            let mistakes = reading(&format!("render = 'auto'\nsteps = [{steps}]")).mistakes;
            let shown: Vec<_> =
                mistakes.iter().map(|one| format!("{} {}", one.place.unwrap(), one.what)).collect();
            assert!(matches!(&shown[..], [one] if one.starts_with(expected)), "{steps}: {shown:?}");
        }
        let many = format!("render = 'auto'\nsteps = [{}]", "{ scroll = 1 },".repeat(51));
        assert!(reading(&many).mistakes[0].what.contains("50 steps at most"));
    }

    #[test]
    fn steps_without_a_browser_are_a_mistake() {
        let why = "are for pages that a browser renders: add `render = \"always\"`";
        for text in [
            "steps = [{ scroll = 1 }]",
            "[[page]]\nname = 'a'\nsteps = [{ scroll = 1 }]",
            "render = 'auto'\n[[page]]\nname = 'a'\nrender = 'never'\nsteps = [{ scroll = 1 }]",
        ] {
            let mistakes = reading(text).mistakes;
            assert!(matches!(&mistakes[..], [one] if one.what.ends_with(why)), "{text}: {mistakes:?}");
        }
        let of_a_kind = "steps = [{ scroll = 1 }]\n[[page]]\nname = 'a'\nrender = 'always'";
        assert!(reading(of_a_kind).mistakes.is_empty());
    }
}
