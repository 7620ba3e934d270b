//! Mistakes in a file, shown with the line that they are in.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use trawl_common::mistake::{Mistake, Place};
use trawl_common::settings::Invalid;
use trawl_common::text::{printable, without_credentials};

use crate::{Fail, counted};

/// Maximum number of characters of a line that are shown.
const MAX_SHOWN: usize = 160;

/// Prints all mistakes in settings, and returns the failure.
pub fn of_settings(invalid: Invalid) -> Fail {
    let Invalid { path, text, mistakes } = invalid;
    let (placed, others): (Vec<_>, Vec<_>) =
        mistakes.into_iter().partition(|mistake| mistake.place.is_some());
    if let ([], [one]) = (&placed[..], &others[..]) {
        return Fail::usage(format!("settings: {one}"));
    }
    print(&path, &text, &placed);
    others.iter().for_each(|mistake| anstream::eprintln!("{}", printable(&mistake.what, 2000)));
    let number = (placed.len() + others.len()) as u64;
    Fail::usage(format!("settings: {}", counted(number, "mistake")))
}

/// Prints mistakes to standard error.
pub fn print(path: &Path, text: &str, mistakes: &[Mistake]) {
    let red = AnsiColor::Red.on_default().bold();
    mistakes.iter().for_each(|mistake| anstream::eprintln!("{}", shown(path, text, mistake, red)));
}

/// Returns a mistake as JSON.
pub fn as_json(mistake: &Mistake) -> Value {
    json!({
        "line": mistake.place.map(|place| place.line),
        "column": mistake.place.map(|place| place.column),
        "what": mistake.what,
    })
}

/// Formats a mistake as compilers do: `spiders/shop.toml:12:9: ...`, then the line, with a caret under the place.
pub fn shown(path: &Path, text: &str, mistake: &Mistake, style: Style) -> String {
    let bold = Style::new().bold();
    let what = printable(&mistake.what, 2000);
    let path = path.display();
    let Some(place) = mistake.place else { return format!("{bold}{path}:{bold:#} {what}") };
    let head = format!("{bold}{path}:{place}:{bold:#} {what}");
    let Some((line, caret)) = excerpt(text, place) else { return head };
    let (number, gap) = (place.line, " ".repeat(place.line.to_string().len()));
    let dim = Style::new().dimmed();
    format!(
        "{head}\n{dim}{number} |{dim:#} {line}\n{gap} {dim}|{dim:#} {}{style}^{style:#}",
        " ".repeat(caret)
    )
}

/// Returns the line and the column of the caret in it. A long line is cut to the part around the place.
fn excerpt(text: &str, place: Place) -> Option<(String, usize)> {
    let line = text.split('\n').nth(place.line.checked_sub(1)? as usize)?;
    let column = place.column.checked_sub(1)? as usize;
    let first = column.saturating_sub(MAX_SHOWN / 2);
    let part: String = without_secrets(line).chars().skip(first).take(MAX_SHOWN).collect();
    Some((printable(part.trim_end(), 4 * MAX_SHOWN), column - first))
}

/// Words in the names of settings and header fields with secret values.
const SECRET: [&str; 6] = ["password", "secret", "token", "key", "authorization", "cookie"];

/// Returns the line with stars in place of credentials in a URL, and after the name of a secret. Its length does not
/// change.
fn without_secrets(line: &str) -> String {
    let shown = without_credentials(line);
    let small = shown.to_ascii_lowercase();
    let named = SECRET.iter().filter_map(|word| small.find(word)).min();
    let Some(value) = named.and_then(|at| Some(at + small[at..].find('=')? + 1)) else { return shown };
    let stars = shown[value..].chars().map(|c| if c.is_whitespace() { c } else { '*' });
    shown[..value].chars().chain(stars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, line: u32, column: u32) -> String {
        let mistake = Mistake { place: Some(Place { line, column }), what: "is wrong".to_owned() };
        shown(Path::new("shop.toml"), text, &mistake, Style::new())
            .replace(&Style::new().bold().to_string(), "")
            .replace(&Style::new().dimmed().to_string(), "")
            .replace(&format!("{:#}", Style::new().bold()), "")
    }

    #[test]
    fn a_mistake_is_shown_with_its_line_and_a_caret_under_its_place() {
        let shown = plain("a = 1\nbad = 2\n", 2, 7);
        assert_eq!(shown, "shop.toml:2:7: is wrong\n2 | bad = 2\n  |       ^");
    }

    #[test]
    fn no_password_is_shown() {
        let shown = plain("url = \"amqp://user:s3cret@host/\" # me@x", 1, 7);
        assert!(shown.contains("1 | url = \"amqp://***********@host/\" # **@x\n  |       ^"), "{shown}");
    }

    #[test]
    fn nor_is_the_value_of_a_secret() {
        for (line, shown) in [
            ("Authorization = \"Bearer x", "1 | Authorization = ******* *"),
            ("headers = { \"X-Api-Key\" = \"x\" }", "1 | headers = { \"X-Api-Key\" = *** *"),
            ("a = 1 # the token", "1 | a = 1 # the token"),
        ] {
            assert!(plain(line, 1, 1).contains(&format!("{shown}\n")), "{}", plain(line, 1, 1));
        }
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let text = format!("{}x{}", "é".repeat(10_000), "z".repeat(10_000));
        let shown = plain(&text, 1, 10_001);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].chars().count() < 200);
        let at = |c| lines.iter().find_map(|line| line.chars().position(|other| other == c));
        assert_eq!((at('x'), lines[1].contains('x')), (lines[2].chars().position(|c| c == '^'), true));
    }

    #[test]
    fn a_place_beyond_the_end_is_shown_without_a_line() {
        assert_eq!(plain("a", 7, 1), "shop.toml:7:1: is wrong");
    }
}
