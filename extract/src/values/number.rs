//! Numbers as people write them.

use serde_json::{Number, Value};

/// Maximum length of a number in characters.
const MAX_LENGTH: usize = 64;

/// Maximum number of letters of a currency beside a number whose decimal mark is followed by a blank.
const MAX_CURRENCY: usize = 4;

/// Names of currencies in lower case. `5, 10 cm` are two numbers.
const CURRENCIES: [&str; 48] = [
    "aed", "ars", "aud", "bgn", "brl", "cad", "chf", "clp", "cny", "cop", "czk", "din", "dkk", "eur", "euro",
    "ft", "gbp", "huf", "idr", "ils", "inr", "jpy", "kr", "krw", "kč", "lei", "mxn", "myr", "nok", "nzd",
    "pln", "ron", "rsd", "rub", "sar", "sek", "sgd", "thb", "tl", "try", "uah", "usd", "vnd", "zar", "zł",
    "грн", "лв", "руб",
];

/// The zeros of the scripts whose digits are read: ASCII, Arabic, Persian, Devanagari, Bengali, Thai, full width.
const ZEROS: [u32; 7] = [0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10];

/// Returns the first number in `text`, or the reason why there is none. Digits are grouped by threes, or as in India,
/// by one mark or blanks. Unless `decimal` is given, the decimal mark is the last of different marks; a single mark is
/// decimal unless exactly three digits follow and no zero leads: `1.234` is 1234, `0.125` and `1.25` are not whole. An
/// ambiguous text is no number.
pub(crate) fn parse(text: &str, decimal: Option<char>) -> Result<Value, &'static str> {
    let start = text.find(|c| digit(c).is_some()).ok_or("it has no digit")?;
    let before = &text[..start];
    let written = characters(&text[start..]);
    let Written { groups, cents, end } = Written::read(&written, is_currency_only(before));
    if groups.iter().map(|(_, digits)| digits.len() + 1).sum::<usize>() > MAX_LENGTH {
        return Err("it is longer than 64 characters");
    }
    let after = &written[end..];
    if groups.len() == 1 && is_date_or_phone(&groups[0].1, after) || decimal.is_none() && is_month(&groups) {
        return Err("it is a date, a time or the like");
    }
    if goes_on(&groups, after) {
        return Err(AMBIGUOUS);
    }
    let leads = before.strip_suffix(['.', ',']).filter(|rest| !rest.ends_with(char::is_alphanumeric));
    let sign = sign(leads.unwrap_or(before), after)?;
    let (whole, fraction) = match leads {
        // Dots that lead from a name to its number; after a currency it may be cents.
        Some(rest) if groups.len() == 1 && rest.ends_with(['.', ',']) => {
            if rest.trim_end_matches(['.', ',']).ends_with(is_currency) {
                return Err(AMBIGUOUS);
            }
            (groups[0].1.clone(), String::new())
        }
        Some(_) if groups.len() == 1 => (String::new(), groups[0].1.clone()),
        Some(_) => return Err(AMBIGUOUS),
        None => parts(&groups, cents, decimal)?,
    };
    let is_apart = !before.ends_with(char::is_alphanumeric);
    let exponent = exponent(after).filter(|_| is_apart).unwrap_or_default();
    let fraction = if fraction.is_empty() { fraction } else { format!(".{fraction}") };
    plain(&format!("{sign}{whole}{fraction}{exponent}")).ok_or("it is no number")
}

/// Parses a number as programs write it.
pub(crate) fn plain(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let number = text.parse::<f64>().ok().filter(|_| is_number)?;
    Number::from_f64(number).map(Value::Number)
}

/// Returns `number` as an integer, if it is whole.
pub(crate) fn whole(number: &Value) -> Option<Value> {
    /// 2^53: beyond it a float is the nearest one to several integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
    Some((float as i64).into())
}

const AMBIGUOUS: &str = "its digits are grouped in no known way, so that it may be several numbers";

/// The digits of a number, and their separators.
struct Written {
    /// Each group, preceded by its mark.
    groups: Vec<(char, String)>,
    /// Whether the last group is decimal, whatever its mark.
    cents: bool,
    /// The position after the digits.
    end: usize,
}

impl Written {
    fn read(text: &[char], has_currency_before: bool) -> Self {
        let digits = |at: usize| text[at..].iter().take_while(|c| c.is_ascii_digit()).collect::<String>();
        let first = digits(0);
        let mut end = first.len();
        let mut groups = vec![('\0', first)];
        loop {
            let next = |at: usize| text.get(end + at).copied().unwrap_or('\0');
            let starts_group = digits((end + 1).min(text.len())).len() == 3 && groups[0].1.len() <= 3;
            let space = match next(0) {
                '.' | ',' | '\'' if next(1).is_ascii_digit() => 1,
                ' ' if starts_group => 1,
                _ => break,
            };
            let group = digits(end + space);
            groups.push((next(0), group.clone()));
            end += space + group.len();
        }
        let cents = cents(&text[end..], has_currency_before);
        if let Some((digits, length)) = cents {
            groups.push(('\0', digits));
            end += length;
            return Self { groups, cents: true, end };
        }
        Self { groups, cents: false, end }
    }
}

/// Returns the two digits of cents that a mark and a blank, or a currency sign, separate from a number that ends before
/// `text`, and the number of characters they take: `, 99 TL`, `€,99`, `€99`.
fn cents(text: &[char], has_currency_before: bool) -> Option<(String, usize)> {
    let mut at = 0;
    let mut pass = |wanted: &dyn Fn(char) -> bool| {
        let is_there = text.get(at).is_some_and(|c| wanted(*c));
        at += usize::from(is_there);
        is_there
    };
    let is_blank = |c: char| matches!(c, ' ' | '\n');
    let is_mark = |c: char| matches!(c, '.' | ',');
    let has_space = pass(&is_blank);
    let has_sign = pass(&is_currency);
    let has_mark = pass(&is_mark);
    let has_blank = pass(&is_blank);
    let digits: String = text[at..].iter().take_while(|c| c.is_ascii_digit()).collect();
    let rest: String = text[at + digits.len()..].iter().collect();
    let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || is_mark(c));
    let is_price = match (has_sign, has_mark) {
        (true, true) => true,
        (true, false) => !(has_space || has_blank) || rest.trim().is_empty(),
        (false, true) => has_blank && is_currency_only(&rest) && ends_price(&rest, has_currency_before),
        (false, false) => false,
    };
    (is_price && digits.len() == 2 && ends).then(|| (digits, at + 2))
}

/// Whether a text is empty, or may be the name or the sign of a currency.
fn is_currency_only(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    letters <= MAX_CURRENCY
        && !text.chars().any(|c| digit(c).is_some())
        && text.split_whitespace().count() <= 1
}

/// Whether what follows cents that stand apart, at most the name or the sign of a currency, says that they are cents.
fn ends_price(rest: &str, has_currency_before: bool) -> bool {
    let name: String = rest.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    if name.is_empty() {
        has_currency_before || rest.contains(is_currency)
    } else {
        CURRENCIES.contains(&name.as_str())
    }
}

/// Returns the digits before and after the decimal mark.
fn parts(
    groups: &[(char, String)],
    cents: bool,
    decimal: Option<char>,
) -> Result<(String, String), &'static str> {
    let last = groups.len() - 1;
    let (mark, digits) = (groups[last].0, &groups[last].1);
    let earlier = &groups[1..last.max(1)];
    let is_repeated = earlier.iter().any(|(other, _)| *other == mark);
    let is_decimal = match decimal {
        _ if last == 0 => false,
        _ if cents => true,
        Some(decimal) => mark == decimal,
        None if !matches!(mark, '.' | ',') || is_repeated => false,
        None => {
            !earlier.is_empty() || digits.len() != 3 || groups[0].1.len() > 3 || groups[0].1.starts_with('0')
        }
    };
    let (whole, fraction) = if is_decimal { (&groups[..last], digits.as_str()) } else { (groups, "") };
    let has_decimal_mark = decimal.is_some_and(|decimal| whole.iter().any(|(mark, _)| *mark == decimal));
    if !are_groups(whole) || has_decimal_mark {
        return Err(AMBIGUOUS);
    }
    Ok((whole.iter().map(|(_, digits)| digits.as_str()).collect(), fraction.to_owned()))
}

/// Whether digits are grouped in a common way: by threes, or in India three and then twos. A grouped number may not
/// begin with zero, as telephone numbers do.
fn are_groups(groups: &[(char, String)]) -> bool {
    let [(_, first), middle @ .., (mark, last)] = groups else { return true };
    let is_one_mark = groups[1..].iter().all(|(other, _)| other == mark);
    let all = |length: usize| middle.iter().all(|(_, digits)| digits.len() == length);
    let by_threes = all(3) && first.len() <= 3;
    let indian = *mark == ',' && all(2) && first.len() <= 2;
    is_one_mark && last.len() == 3 && (by_threes || indian) && !first.starts_with('0')
}

/// Whether digits go on twice after the same mark, as in `15/08/2017`, `15. 08. 2017` and `10:30:00`, or are a time or
/// a day: `10:30`, `15/08`.
fn is_date_or_phone(first: &str, after: &[char]) -> bool {
    let Some((mark, second, next)) = next_part(after) else { return false };
    let goes_on = || next_part(next).is_some_and(|(other, ..)| other == mark);
    let has_blanks = after[0] == ' ' || after[1] == ' ';
    let is_pair = first.len() <= 2 && second.len() == 2 && !has_blanks;
    goes_on() || is_pair && (mark == ':' || mark == '/' && second[0] == '0')
}

/// Reads the mark and the digits of the next part of a date, and returns them with what follows.
fn next_part(text: &[char]) -> Option<(char, &[char], &[char])> {
    let after_blank = |text: &[char]| usize::from(text.first() == Some(&' '));
    let text = &text[after_blank(text)..];
    let (mark, rest) = text.split_first().filter(|(mark, _)| matches!(mark, '/' | '-' | ':' | '.'))?;
    let rest = &rest[after_blank(rest)..];
    let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    (digits > 0).then(|| (*mark, &rest[..digits], &rest[digits..]))
}

/// Whether a number may be a month and its year: `08.2017`.
fn is_month(groups: &[(char, String)]) -> bool {
    let [(_, month), ('.', year)] = groups else { return false };
    let is_within = |text: &str, range: std::ops::Range<u32>| {
        text.parse::<u32>().is_ok_and(|number| range.contains(&number))
    };
    month.len() == 2 && year.len() == 4 && is_within(month, 1..13) && is_within(year, 1900..2100)
}

/// Whether a number goes on in a way that no number does: with further digits after its groups, as those of telephones,
/// or with a fraction.
fn goes_on(groups: &[(char, String)], after: &[char]) -> bool {
    let is_fraction = |c: &char| matches!(c, '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{215f}');
    let has_blanks = groups.last().is_some_and(|(mark, _)| *mark == ' ');
    match after {
        ['·', next, ..] => next.is_ascii_digit(),
        [' ', next, ..] => is_fraction(next) || has_blanks && next.is_ascii_digit(),
        [next, ..] => is_fraction(next),
        [] => false,
    }
}

/// Returns the sign of a number between these texts.
fn sign(before: &str, after: &[char]) -> Result<&'static str, &'static str> {
    if before.ends_with(['±', '∓']) {
        return Err("it may be positive and negative");
    }
    let is_over = |rest: &[char]| rest.iter().all(|c| c.is_whitespace() || is_currency(*c));
    if let [c, rest @ ..] = after
        && is_minus(*c)
        && is_over(rest)
    {
        return Err("a minus follows it");
    }
    let without_sign = before.trim_end_matches(is_currency);
    let alone = before.trim_end_matches(|c: char| c.is_whitespace() || is_currency(c));
    let is_negative = [(without_sign, false), (alone, true)].into_iter().any(|(before, must_be_first)| {
        let rest = before.strip_suffix(is_minus);
        rest.is_some_and(|rest| {
            if must_be_first { rest.trim().is_empty() } else { !rest.ends_with(char::is_alphanumeric) }
        })
    });
    Ok(if is_negative { "-" } else { "" })
}

/// Returns the exponent at the start of the rest of a number as programs write it.
fn exponent(after: &[char]) -> Option<String> {
    let ['e' | 'E', rest @ ..] = after else { return None };
    let sign: String = rest.iter().take(1).filter(|c| matches!(c, '+' | '-')).collect();
    let digits: String = rest[sign.len()..].iter().take_while(|c| c.is_ascii_digit()).collect();
    let next = rest.get(sign.len() + digits.len());
    (!digits.is_empty() && next.is_none_or(|c| !c.is_alphanumeric())).then(|| format!("e{sign}{digits}"))
}

fn is_minus(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2013}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}')
}

fn is_currency(c: char) -> bool {
    matches!(c, '$' | '¢'..='¥' | '฿' | '\u{20a0}'..='\u{20cf}' | '\u{ff04}' | '\u{ffe0}' | '\u{ffe1}' | '\u{ffe5}')
}

/// Returns the value of a digit of any supported script.
fn digit(c: char) -> Option<u32> {
    let offset = |zero: &u32| u32::from(c).checked_sub(*zero).filter(|digit| *digit < 10);
    ZEROS.iter().find_map(offset)
}

/// Returns the characters that a number may have, from its first digit on. White space other than one blank is a line
/// break.
fn characters(text: &str) -> Vec<char> {
    let mut characters: Vec<char> = Vec::new();
    for c in text.chars().map(plain_char) {
        let is_further = c.is_whitespace() && characters.last().is_some_and(|last| last.is_whitespace());
        if is_further {
            characters.pop();
        }
        if characters.len() == 2 * MAX_LENGTH {
            break;
        }
        characters.push(if is_further || c.is_whitespace() && c != ' ' { '\n' } else { c });
    }
    characters
}

/// Returns the character of ASCII that means the same in a number.
fn plain_char(c: char) -> char {
    match c {
        '\u{ff0c}' | '\u{60c}' => ',',
        '\u{ff0e}' | '\u{66b}' => '.',
        '\u{2019}' | '\u{66c}' | '\u{b4}' | '`' => '\'',
        '\u{a0}' | '\u{2007}'..='\u{2009}' | '\u{202f}' | '\u{3000}' => ' ',
        _ => digit(c).and_then(|digit| char::from_digit(digit, 10)).unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_meant() {
        for (text, number) in [
            ("1,234.50 €", json!(1234.5)),
            ("1.234,50", json!(1234.5)),
            ("1 234,5", json!(1234.5)),
            ("1\u{202f}234\u{a0}567", json!(1_234_567)),
            ("1'234.500", json!(1234.5)),
            ("1,234,567", json!(1_234_567)),
            ("1,234", json!(1234)),
            ("1.234", json!(1234)),
            ("1,234.500", json!(1234.5)),
            ("12345.678", json!(12345.678)),
            ("0.125", json!(0.125)),
            ("1.25", json!(1.25)),
            ("$ 3", json!(3)),
            ("3 of 10", json!(3)),
            ("No. 7.", json!(7)),
            ("1..2", json!(1)),
            ("99.9%", json!(99.9)),
            (".5", json!(0.5)),
            ("10-20", json!(10)),
            ("Rs. 12,34,567.00", json!(1_234_567.0)),
            ("12,- €", json!(12)),
            ("CHF 5.–", json!(5)),
            ("(128 reviews)", json!(128)),
            ("1.5e3", json!(1500.0)),
            ("in 2024 100 people", json!(2024)),
            ("5, 10 people", json!(5)),
            ("1, 2 and 3", json!(1)),
            ("5, 10 cm", json!(5)),
            ("8/10", json!(8)),
            ("16:9", json!(16)),
            ("5: 10 kg", json!(5)),
            ("Price.....19", json!(19)),
            ("12345678901234567890", json!(12_345_678_901_234_567_890_u64)),
        ] {
            assert_eq!(parse(text, None), Ok(number), "{text}");
        }
        for text in ["", "none", "-", ".", &"1".repeat(70)] {
            assert!(parse(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn a_price_may_have_its_cents_apart() {
        for (text, number) in [
            ("118, 99 TL", json!(118.99)),
            ("118,\n  99 TL", json!(118.99)),
            ("Preis: 118, 99 TL", json!(118.99)),
            ("$119. 95", json!(119.95)),
            ("1.837, 32 €", json!(1837.32)),
            ("19€,99", json!(19.99)),
            ("19€99", json!(19.99)),
            ("19 € 99", json!(19.99)),
            ("1 299 €,50", json!(1299.5)),
            ("10 € 20 pieces", json!(10)),
            ("10 € 200", json!(10)),
        ] {
            assert_eq!(parse(text, None), Ok(number), "{text}");
        }
    }

    #[test]
    fn digits_of_any_script_are_digits_and_any_minus_is_one() {
        for (text, number) in [
            ("１２３．５", json!(123.5)),
            ("١٬٢٣٤٫٥", json!(1234.5)),
            ("۱۲۳", json!(123)),
            ("١٢٣،٤٥", json!(123.45)),
            ("१,२३४", json!(1234)),
            ("-5 °C", json!(-5)),
            ("\u{2212}0,5", json!(-0.5)),
            ("–5", json!(-5)),
            ("－５", json!(-5)),
            ("-.5", json!(-0.5)),
            ("-$5", json!(-5)),
            ("$-5", json!(-5)),
            ("- 5 €", json!(-5)),
            ("€ - 5", json!(5)),
            ("A-20", json!(20)),
            ("Price - 5", json!(5)),
            ("+5", json!(5)),
        ] {
            assert_eq!(parse(text, None), Ok(number), "{text}");
        }
    }

    #[test]
    fn what_is_in_doubt_is_no_number() {
        for text in [
            "$..75",
            "£1.299.99",
            "1,299,99 €",
            "15.08.2017",
            "15/08/2017",
            "2017-08-15",
            "10:30:00",
            "10:30",
            "15/08",
            "08.2017",
            "15. 08. 2017",
            "15 / 08 / 2017",
            "555-123-4567",
            "555 123 4567",
            "1½",
            "1 ½ cups",
            "£1·50",
            "12.34.56",
            "192.168.0.1",
            "1,2,3",
            "1.234'567,8",
            "0 800 123 456",
            "±5",
            "5-",
            "5,00- €",
        ] {
            assert!(parse(text, None).is_err(), "{text}: {:?}", parse(text, None));
        }
    }

    #[test]
    fn a_decimal_mark_that_is_known_leaves_no_doubt() {
        for (text, decimal, number) in [
            ("1.234", '.', Some(json!(1.234))),
            ("1.234", ',', Some(json!(1234))),
            ("1,234", ',', Some(json!(1.234))),
            ("1,234", '.', Some(json!(1234))),
            ("1.234,5", ',', Some(json!(1234.5))),
            ("1 234.567", '.', Some(json!(1234.567))),
            ("1,5", '.', None),
            ("1.234,5", '.', None),
            ("1.2.3", '.', None),
            ("12", ',', Some(json!(12))),
        ] {
            assert_eq!(parse(text, Some(decimal)).ok(), number, "{text} {decimal}");
        }
    }

    #[test]
    fn whole_numbers_are_exact() {
        assert_eq!(whole(&json!(3.0)), Some(json!(3)));
        assert_eq!(whole(&json!(u64::MAX)), Some(json!(u64::MAX)));
        assert_eq!(whole(&json!(3.5)), None);
        assert_eq!(whole(&json!(1e300)), None);
        assert_eq!(plain("1e3"), Some(json!(1000.0)));
        assert_eq!(plain("inf"), None);
        assert_eq!(plain("1e999"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-.,' 0-9aeE€+/±\u{a0}\u{2212}٣５]{0,20}", decimal in proptest::option::of("[.,]")) {
            let _ = parse(&text, decimal.and_then(|mark| mark.chars().next()));
        }

        #[test]
        fn a_number_is_read_back_in_every_way_of_writing_it(number in 0_u32..100_000_000, cents in 0_u32..100) {
            let digits = number.to_string();
            let grouped = |mark: &str| {
                let start = digits.len() % 3;
                let mut groups: Vec<&str> = if start > 0 { vec![&digits[..start]] } else { Vec::new() };
                groups.extend(digits.as_bytes()[start..].chunks(3).map(|group| str::from_utf8(group).unwrap()));
                groups.join(mark)
            };
            let value = Ok(json!(format!("{number}.{cents:02}").parse::<f64>().unwrap()));
            for (group, decimal) in [(",", '.'), (".", ','), (" ", ','), ("'", '.'), ("", '.'), ("\u{202f}", ',')] {
                let text = format!("€ {}{decimal}{cents:02}", grouped(group));
                prop_assert_eq!(&parse(&text, None), &value, "{}", text);
                prop_assert_eq!(&parse(&text, Some(decimal)), &value, "{}", text);
            }
        }
    }
}
