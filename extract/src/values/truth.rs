//! Texts that mean true or false.

/// Affirmative answers, and the wording of shops for available products.
const TRUE: &[&str] = &["", "yes", "true", "on", "1", "in stock", "instock", "available"];
const FALSE: &[&str] = &[
    "no",
    "false",
    "off",
    "0",
    "out of stock",
    "outofstock",
    "sold out",
    "soldout",
    "not available",
    "unavailable",
    "discontinued",
];

/// The texts of a field that mean true, and those that mean false; the default ones if it has none.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    truth: Vec<String>,
    falsehood: Vec<String>,
}

impl Truth {
    pub(crate) fn new(truth: &[String], falsehood: &[String]) -> Self {
        let folded = |texts: &[String]| texts.iter().map(|text| fold(text)).collect();
        Self { truth: folded(truth), falsehood: folded(falsehood) }
    }

    /// Returns whether a text means true, ignoring case; `None` if that is unknown. If only one list is given, any
    /// other text belongs to the other side.
    pub(crate) fn of(&self, text: &str) -> Option<bool> {
        // https://schema.org/InStock
        let (_, name) = text.split_once("schema.org/").unwrap_or(("", text));
        let (text, name) = (fold(text), fold(name));
        match (&*self.truth, &*self.falsehood) {
            ([], []) if TRUE.contains(&&*name) => Some(true),
            ([], []) => FALSE.contains(&&*name).then_some(false),
            (truth, []) => Some(truth.contains(&text)),
            ([], falsehood) => Some(!falsehood.contains(&text)),
            (truth, _) if truth.contains(&text) => Some(true),
            (_, falsehood) => falsehood.contains(&text).then_some(false),
        }
    }
}

fn fold(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(truth: &[&str], falsehood: &[&str]) -> Truth {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Truth::new(&owned(truth), &owned(falsehood))
    }

    #[test]
    fn the_usual_texts_hold_where_none_are_named() {
        let truth = Truth::default();
        for (text, value) in [
            ("In  Stock", Some(true)),
            ("https://schema.org/SoldOut", Some(false)),
            ("auf Lager", None),
            ("", Some(true)),
        ] {
            assert_eq!(truth.of(text), value, "{text}");
        }
    }

    #[test]
    fn named_texts_stand_in_their_place() {
        let stock = named(&["Auf Lager", "Überall"], &[]);
        for (text, value) in
            [(" auf  LAGER\n", true), ("überall", true), ("yes", false), ("", false), ("Ausverkauft", false)]
        {
            assert_eq!(stock.of(text), Some(value), "{text}");
        }
        let both = named(&["ja"], &["nein"]);
        assert_eq!([both.of("Ja"), both.of("NEIN"), both.of("vielleicht")], [Some(true), Some(false), None]);
        let sold = named(&[], &["épuisé"]);
        assert_eq!([sold.of("Épuisé"), sold.of("3 pièces")], [Some(false), Some(true)]);
    }
}
