//! `[arguments]`: values that may be given when a crawl is started, each with a default or without.

use toml::de::{DeTable, DeValue};

use super::given::{Given, is_inline_table};
use super::notes::Notes;
use super::placeholders::placeholder;
use super::section::Section;
use crate::mistake::{Mistake, Place, Places};
use crate::nearest::nearest;
use crate::spider::arguments::{ArgumentName, ArgumentValue, Arguments, Declaration, Declarations};

/// Maximum number of arguments that a file may declare.
const MAX: usize = 100;

/// The section that declares them.
pub(super) const SECTION: &str = "arguments";

/// Reads the declarations in `[arguments]`.
pub(super) fn declarations(section: &Section<'_>) -> Declarations {
    let mut declared = Declarations::new();
    for (name, place, given) in section.entries() {
        if let Err(error) = name.parse::<ArgumentName>() {
            given.notes.wrong(place, error);
            continue;
        }
        if declared.len() == MAX {
            given.notes.wrong(place, format_args!("a spider has at most {MAX} arguments"));
            break;
        }
        let (value, help) = declaration(&name, place, &given);
        declared.insert(name, Declaration { place, value, help });
    }
    declared
}

/// Notes the arguments of `file` that none of its texts uses.
pub(super) fn note_unused(notes: &Notes<'_>, file: &DeTable<'_>) {
    let texts = || file.iter().filter(|(key, _)| key.get_ref() != SECTION).map(|(_, value)| value.get_ref());
    notes.each_argument(|name, Declaration { place, .. }| {
        if !texts().any(|value| names(value, &placeholder(name))) {
            notes.wrong(
                *place,
                format_args!("arguments.{name}: is not used: no text has {}", placeholder(name)),
            );
        }
    });
}

fn names(value: &DeValue<'_>, placeholder: &str) -> bool {
    match value {
        DeValue::String(text) => text.contains(placeholder),
        DeValue::Array(values) => values.iter().any(|value| names(value.get_ref(), placeholder)),
        DeValue::Table(table) => table.values().any(|value| names(value.get_ref(), placeholder)),
        _ => false,
    }
}

/// Returns the value and the help of an argument: a text is its value, a table has `default`, `help` or both.
fn declaration(name: &str, place: Place, given: &Given<'_>) -> (Option<String>, Option<String>) {
    if !given.is_table() {
        return (value(given), None);
    }
    if !given.is_inline_table() {
        given.wrong::<()>("write it in one line: { help = \"what it is\", default = \"its value\" }");
    }
    let Some(mut section) = Section::from_given(given) else { return (None, None) };
    let value = match section.get("default") {
        Some(default) => value(&default),
        None => {
            given.notes.not_given(place, &given.key, name);
            None
        }
    };
    let help = section.read("help", |given| given.verbatim().map(str::to_owned));
    section.end();
    (value, help)
}

fn value(given: &Given<'_>) -> Option<String> {
    let text = given.verbatim()?;
    match text.parse::<ArgumentValue>() {
        Ok(value) => Some(value.to_string()),
        Err(error) => given.wrong(error),
    }
}

/// Returns the text of a spider's file with these values as the defaults of its arguments. Its lines are those of
/// `text`. Mistakes in `text` itself are found when it is read.
///
/// # Errors
/// Fails if `text` declares no such argument.
pub fn with_arguments(text: &str, arguments: &Arguments) -> Result<String, Vec<Mistake>> {
    if arguments.is_empty() {
        return Ok(text.to_owned());
    }
    let Ok(file) = DeTable::parse(text) else { return Ok(text.to_owned()) };
    let section = file.get_ref().get(SECTION);
    let place = section.map(|section| Places::from_text(text).place(&section.span()));
    let empty = DeTable::default();
    let declared = match section.map(|section| section.get_ref()) {
        Some(DeValue::Table(declared)) => declared,
        _ => &empty,
    };
    let mut edits = Vec::new();
    let mut mistakes = Vec::new();
    for (name, value) in arguments.iter() {
        let name = name.to_string();
        match declared.get(name.as_str()) {
            None => mistakes.push(undeclared(&name, declared, place)),
            Some(given) => edits.extend(edit(text, given, value)),
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    // From the last on, because an edit moves the text after it.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.0.start));
    let mut text = text.to_owned();
    edits.into_iter().for_each(|(range, with)| text.replace_range(range, &with));
    Ok(text)
}

type Edit = (std::ops::Range<usize>, String);

/// Returns the edit that makes `value` the default of an argument; `None` if its declaration is invalid.
fn edit(text: &str, declared: &toml::Spanned<DeValue<'_>>, value: &ArgumentValue) -> Option<Edit> {
    let quoted = toml::Value::String(value.to_string()).to_string();
    match declared.get_ref() {
        DeValue::String(_) => Some((declared.span(), quoted)),
        DeValue::Table(table) if is_inline_table(text, declared) => Some(match table.get("default") {
            Some(default) => (default.span(), quoted),
            None => {
                let comma = if table.is_empty() { "" } else { "," };
                let inside = declared.span().start + 1;
                (inside..inside, format!(" default = {quoted}{comma}"))
            }
        }),
        _ => None,
    }
}

fn undeclared(name: &str, declared: &DeTable<'_>, place: Option<Place>) -> Mistake {
    let known: Vec<&str> = declared.keys().map(|name| name.get_ref().as_ref()).collect();
    let hint = nearest(name, known.into_iter());
    let what = match declared.is_empty() {
        true => format!("has no [arguments], and so no `{name}`"),
        false => format!("there is no argument `{name}`{hint}"),
    };
    Mistake { place, what }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::settings::{Items, SinkSettings};
    use crate::spider::file::{Reading, read};
    use crate::spider::{Origin, Spider};

    fn reading(text: &str) -> Reading {
        read(Spider::without_file("shop".parse().unwrap(), &Items::default()), text, Origin::Local, &|_| None)
    }

    fn given(arguments: &[&str]) -> Arguments {
        Arguments::new(arguments.iter().map(|text| text.parse().unwrap())).unwrap()
    }

    /// Reads the file with these arguments.
    fn with(text: &str, arguments: &[&str]) -> Reading {
        reading(&with_arguments(text, &given(arguments)).unwrap())
    }

    #[track_caller]
    fn one(text: &str, expected: &str) {
        let Reading { mistakes, unset, .. } = reading(text);
        let all: Vec<_> = mistakes.iter().chain(&unset).collect();
        let found = all.iter().map(|mistake| format!("{} {mistake}", mistake.place.unwrap()));
        let found: Vec<String> = found.collect();
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\n{found:#?}\nnot {expected}");
    }

    const SHOP: &str = "[start]\nurls = ['https://shop.example/{arg.category}?page={arg.page}']\n\
                        [arguments]\ncategory = { help = 'what is sold' }\npage = '1'\n";

    #[test]
    fn texts_have_the_values_that_are_given_or_else_the_defaults() {
        let urls = |arguments: &[&str]| with(SHOP, arguments).ready().unwrap().start.urls;
        assert_eq!(urls(&["category=hats"]), ["https://shop.example/hats?page=1"]);
        assert_eq!(urls(&["page=7", "category=hats"]), ["https://shop.example/hats?page=7"]);
    }

    #[test]
    fn an_argument_without_a_value_is_reported_at_its_declaration_and_what_names_it_is_left_out() {
        let reading = reading(SHOP);
        assert_eq!((reading.mistakes.len(), reading.spider.start.urls.len()), (0, 0));
        let unready = reading.ready().unwrap_err();
        assert_eq!(unready.len(), 1);
        let expected = "arguments.category: has no default and is not given: -a category=VALUE";
        assert_eq!((unready[0].to_string().as_str(), unready[0].place.unwrap().line), (expected, 4));
    }

    #[test]
    fn what_lacks_an_argument_alone_is_no_other_mistake() {
        let home = "[start]\nurls = ['https://{arg.shop}.example/']\n[request.headers]\nX-A = 'x'\n";
        one(&format!("{home}[arguments]\nshop = {{}}\n"), "6:1 arguments.shop: has no default");
    }

    #[test]
    fn undeclared_unused_and_malformed_arguments_are_mistakes_with_their_places() {
        one(
            "[start]\nurls = ['https://a.example/{arg.x}']",
            "2:9 start.urls: there is no argument `x` in [arguments]",
        );
        one(
            "[arguments]\ncategory = 'a'\n[follow]\narea = '{arg.catgory}{arg.category}'",
            "4:8 follow.area: there is no argument `catgory` in [arguments]: did you mean `category`?",
        );
        one("[arguments]\na = 'x'", "2:1 arguments.a: is not used: no text has {arg.a}");
        one("[arguments]\na = 'x'\n[follow]\narea = '{arg.a}{arg.b'", "4:8 follow.area: `{arg.b` has no `}`");
        let used = "[follow]\narea = '{arg.a}'\n[arguments]\n";
        one(&format!("{used}a = 5"), "4:5 arguments.a: a text in quotes is wanted");
        one(&format!("{used}a = 'x\u{9}y'"), "4:5 arguments.a: a value of an argument is one line");
        one(
            &format!("{used}a = {{ defualt = 'x', default = 'y' }}"),
            "4:7 there is no key `arguments.a.defualt`",
        );
        one(&format!("{used}\"a b\" = 'x'\na = 'x'"), "4:1 `a b` is not the name of an argument");
        one(
            "[arguments.a]\ndefault = 'x'\n[follow]\narea = '{arg.a}'",
            "1:1 arguments.a: write it in one line",
        );
    }

    #[test]
    fn a_spider_has_at_most_a_hundred_arguments() {
        let text: String = (0..101).map(|number| format!("a{number} = '{{arg.x}}'\n")).collect();
        let Reading { mistakes, .. } = reading(&format!("[arguments]\n{text}"));
        assert!(mistakes.iter().any(|mistake| mistake.what == "a spider has at most 100 arguments"));
    }

    #[test]
    fn an_argument_that_is_not_declared_cannot_be_given() {
        let error = |text, argument| with_arguments(text, &given(&[argument])).unwrap_err()[0].to_string();
        assert_eq!(error(SHOP, "pgae=1"), "there is no argument `pgae`: did you mean `page`?");
        assert_eq!(error("max_pages = 1", "page=1"), "has no [arguments], and so no `page`");
    }

    #[test]
    fn no_argument_chooses_a_folder_or_an_environment_variable() {
        let sink = "[[sinks]]\nkind = 'jsonl'\npath = 'out/{arg.a}.jsonl'\n[arguments]\na = 'x'\n";
        let path =
            |value: &str| match &with(sink, &[&format!("a={value}")]).ready().unwrap().sinks.unwrap()[0] {
                SinkSettings::Jsonl(lines) => lines.path.display().to_string(),
                other => panic!("{other}"),
            };
        assert_eq!(path("hats"), "out/hats.jsonl");
        for bad in ["../x", "..", "/etc/passwd", r"a\b", ".x"] {
            let Reading { mistakes, .. } = with(sink, &[&format!("a={bad}")]);
            assert!(mistakes[0].what.contains("leads out of its folder"), "{bad}: {mistakes:?}");
        }
        let env = "allowed_domains = ['a.example']\n[request]\nheaders = { A = { env = '{arg.a}' } }\n[arguments]\na = 'PATH'\n";
        one(env, "3:25 request.headers.A.env: no argument may say which environment variable is read");
    }

    #[test]
    fn a_value_is_not_looked_through_for_arguments() {
        let text = "[follow]\narea = '{arg.a}'\n[arguments]\na = ''\n";
        let area = with(text, &["a={arg.a}"]).ready().unwrap().follow.unwrap().area.unwrap().to_string();
        assert_eq!(area, "{arg.a}");
    }

    #[test]
    fn arguments_stand_inside_what_is_json_too() {
        let text = "[fields]\na = { css = 'b', default = { of = ['{arg.a}'] } }\n[arguments]\na = 'x'\n";
        let spider = with(text, &["a=y"]).ready().unwrap();
        let expected = serde_json::json!({ "of": ["y"] });
        assert_eq!(spider.items[0].fields[0].1.default, Some(expected));
    }

    proptest! {
        #[test]
        fn any_value_arrives_as_it_is_and_changes_nothing_else_of_the_file(
            value in "[ -~é'\"\\\\{}#]{0,40}",
            declared in prop::sample::select(vec!["''", "'x'", "{}", "{ }", "{ help = 'x' }", "{ default = 'x', help = 'y' }"]),
        ) {
            let text = format!("[arguments]\na = {declared} # a comment\nb = '2'\n[follow]\nexclude = ['{{arg.b}}']\narea = 'x{{arg.a}}y'\n");
            let argument = crate::spider::arguments::Argument { name: "a".parse().unwrap(), value: value.parse().unwrap() };
            let arguments = Arguments::new([argument]).unwrap();
            let rendered = with_arguments(&text, &arguments).unwrap();
            prop_assert_eq!(with_arguments(&rendered, &arguments).unwrap(), rendered.clone(), "it is a fixed point");
            prop_assert_eq!(rendered.lines().count(), text.lines().count());
            let follow = reading(&rendered).ready().unwrap().follow.unwrap();
            prop_assert_eq!(follow.area.unwrap().to_string(), format!("x{}y", value));
            prop_assert_eq!(&follow.exclude[0].value, "2");
        }
    }
}
