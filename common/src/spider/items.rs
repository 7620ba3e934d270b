//! What a spider extracts.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::place::Sited;
use crate::settings;

/// One kind of item: one a page, or one for each element that a selector matches.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRule {
    /// What sets these items apart from the spider's others.
    pub name: Option<String>,
    /// A selector: one item for each match, whose fields are looked for inside it. For JSON a JSON Pointer or JSONPath. One
    /// item a page without it.
    pub each: Option<Sited<String>>,
    /// The fields by name, in order.
    pub fields: Vec<(String, Field)>,
}

impl ItemRule {
    /// What is read of every page by default: `title`, `description`, `canonical`, `language`, `link_count`, by setting
    /// `links`, and the settings' own fields, which may replace these.
    pub fn of_every_page(items: &settings::Items) -> Self {
        let links = items.links.then_some(PageField::Links);
        let defaults = PageField::DEFAULTS.into_iter().chain(links);
        let mut fields: Vec<(String, Field)> =
            defaults.map(|field| (field.as_str().to_owned(), Field::of(FieldSource::Page(field)))).collect();
        for (name, selector) in &items.fields {
            fields.retain(|(other, _)| other != name);
            fields.push((name.clone(), Field::of(FieldSource::Css(Sited::nowhere(selector.clone())))));
        }
        Self { name: None, each: None, fields }
    }
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where its values come from.
    pub from: FieldSource,
    /// Whether it has all values, or the first.
    pub list: bool,
    /// What its values are.
    pub kind: Kind,
    /// What is kept of each value's text: the first group of a regular expression, or all that it matches. What it does
    /// not match is no value. White space is normalised before, but for HTML and JSON.
    pub regex: Option<Sited<String>>,
    /// How a date is written, as by strptime.
    pub format: Option<Sited<String>>,
    /// The zone of dates with a time that name no offset; else they are taken for UTC.
    pub timezone: Option<TimeZone>,
    /// The decimal mark of its numbers, `.` or `,`, if that is known.
    pub decimal: Option<char>,
    /// The texts that are true, in place of the usual ones. Unless `falsehood` names texts, any other is false.
    pub truth: Vec<String>,
    /// The texts that are false, in place of the usual ones.
    pub falsehood: Vec<String>,
    /// What becomes of white space in its texts: else it is kept in JSON, and collapsed in all else.
    pub whitespace: Option<Whitespace>,
    /// The value where there is none, or none that fits the kind.
    pub default: Option<Value>,
    /// What a page without it is.
    pub required: Required,
}

impl Field {
    /// A field with nothing said of it but where its values come from: of one text, unless the page's own fields are otherwise.
    pub fn of(from: FieldSource) -> Self {
        let (kind, list) = match &from {
            FieldSource::Page(field) => (field.kind(), *field == PageField::Links),
            _ => (Kind::default(), false),
        };
        Self {
            from,
            list,
            kind,
            regex: None,
            format: None,
            timezone: None,
            decimal: None,
            truth: Vec::new(),
            falsehood: Vec::new(),
            whitespace: None,
            default: None,
            required: Required::No,
        }
    }
}

/// `whitespace`: what becomes of white space in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whitespace {
    /// Each run of it is one space.
    Collapse,
    /// Lines stay lines, as a reader sees them: blocks and `<br>` begin new ones. Within a line each run is one space.
    Lines,
    /// It stays as it is.
    Keep,
}

/// `required`: what a page is without the field. Of several fields the last of these decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Required {
    /// As good as any.
    #[default]
    No,
    /// Worth a warning that is counted; its item is kept.
    Warn,
    /// A failure to be tried again.
    Retry,
    /// A failure for good.
    Fail,
}

/// Where a field's values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldSource {
    /// `css`: a CSS selector in the notation of Scrapy: `h1::text` (the texts directly in it), `h1 ::text` (and all below),
    /// `a::attr(href)`, and without either the element: all its visible text.
    Css(Sited<String>),
    /// `json`: a JSON Pointer (RFC 6901) or a JSONPath (RFC 9535), into a response of JSON. A list that it finds is so many
    /// values, unless the kind is JSON.
    Json(Sited<String>),
    /// `header`: a field of the response's head.
    Header(Sited<String>),
    /// `meta`: the content of `<meta>` by its `name` or `property`, as `og:title`.
    Meta(Sited<String>),
    /// `json_ld`: the objects of this `@type` in the page's JSON-LD, not those in one of it, and what `path` finds in each.
    JsonLd(Sited<String>, Option<Sited<String>>),
    /// `microdata`: the items of this type (the last part of `itemtype`) in the page's microdata, not those in one of it, and
    /// what `path` finds in each; they have the shape of JSON-LD.
    Microdata(Sited<String>, Option<Sited<String>>),
    /// `table`: the rows of the tables that a selector matches, each an object by the table's headings.
    Table(Sited<String>),
    /// `page`: what the page says of itself.
    Page(PageField),
    /// `each` and `fields`: an object for each match of a selector, with fields looked for inside it.
    Each(Sited<String>, Vec<(String, Field)>),
}

/// `type`: what a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Text, white space normalised. Values of JSON stay what they are.
    #[default]
    Text,
    /// The first number in the text, as people write it: `1,234.50 €` and `1.234,50` are 1234.5. A single `.` or `,` is the
    /// decimal mark unless exactly three digits follow: `1.234` is 1234, but `0.125` is not whole. What may be meant in two ways is no
    /// number. A text in JSON is read as programs write numbers.
    Number,
    /// A whole number.
    Integer,
    /// `true`: yes, true, on, 1, in stock, available, or the mere presence of an element or attribute without text. `false`: no,
    /// false, off, 0, out of stock, sold out, unavailable, not available, discontinued. Also as schema.org says it.
    Boolean,
    /// A date, or a date and time, written as RFC 3339 does: `2024-05-01`, or `2024-05-01T10:00:00Z`, which is taken for UTC
    /// where no offset is named.
    Date,
    /// An absolute URL, by the page's `<base>`; canonical, if it is of the web.
    Url,
    /// The element's HTML.
    Html,
    /// Text that is JSON.
    Json,
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PageField {
    /// Its title.
    Title,
    /// Its description in `<meta>`.
    Description,
    /// The URL that it calls canonical.
    Canonical,
    /// Its language.
    Language,
    /// The number of its links.
    LinkCount,
    /// Its links, absolute, each once.
    Links,
    /// Its main text, without navigation and the like.
    Text,
    /// Its URL, after redirects.
    Url,
}

impl PageField {
    /// What is read of every page by default.
    pub const DEFAULTS: [Self; 5] =
        [Self::Title, Self::Description, Self::Canonical, Self::Language, Self::LinkCount];
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Title,
        Self::Description,
        Self::Canonical,
        Self::Language,
        Self::LinkCount,
        Self::Links,
        Self::Text,
        Self::Url,
    ];

    /// What its values are, whatever a spider says.
    pub fn kind(self) -> Kind {
        match self {
            Self::LinkCount => Kind::Integer,
            Self::Canonical | Self::Links | Self::Url => Kind::Url,
            Self::Title | Self::Description | Self::Language | Self::Text => Kind::Text,
        }
    }

    /// The name in spider files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
