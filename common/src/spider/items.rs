//! Item rules of a spider.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::{Selector, Transform};
use crate::mistake::Sited;
use crate::settings;

/// A kind of item: one per page, or one for each element that a selector matches.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRule {
    /// The name that distinguishes these items from the spider's others.
    pub name: Option<String>,
    /// One item for each match, whose fields are looked for inside it.
    /// Without it, one item per page.
    pub each: Option<Selector>,
    /// The fields by name, in order.
    pub fields: Vec<(String, Field)>,
    /// The number of the kind of page that has them; `None` for every page.
    pub page: Option<usize>,
}

impl ItemRule {
    /// Returns the default fields of every page: `title`, `description`, `canonical`, `language`, `link_count`, with
    /// the setting `links` also those, and the settings' own fields, which may replace these.
    pub(crate) fn of_every_page(items: &settings::Items) -> Self {
        let links = items.links.then_some(PageField::Links);
        let defaults = PageField::DEFAULTS.into_iter().chain(links);
        let mut fields: Vec<(String, Field)> =
            defaults.map(|field| (field.as_str().to_owned(), Field::new(FieldSource::Page(field)))).collect();
        for (name, selector) in &items.fields {
            fields.retain(|(other, _)| other != name);
            fields.push((name.clone(), Field::new(FieldSource::Css(Sited::nowhere(selector.clone())))));
        }
        Self { name: None, each: None, fields, page: None }
    }
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The source of its values.
    pub from: FieldSource,
    /// Whether the field has all values, or the first.
    pub list: bool,
    /// The type of its values.
    pub kind: Kind,
    /// A regular expression that selects the part of each text to keep: its first group, or the whole match. A text
    /// that it does not match is no value. White space is normalised before, except for HTML and JSON.
    pub regex: Option<Sited<String>>,
    /// The format of a date, as for strptime.
    pub format: Option<Sited<String>>,
    /// The time zone of dates with a time but without an offset; UTC if `None`.
    pub timezone: Option<TimeZone>,
    /// The decimal mark of its numbers, `.` or `,`, if known.
    pub decimal: Option<char>,
    /// Texts that mean true, in place of the default ones. Unless `falsehood` has texts, any other means false.
    pub truth: Vec<String>,
    /// Texts that mean false, in place of the default ones.
    pub falsehood: Vec<String>,
    /// How white space in its texts is handled; by default it is kept in JSON, and collapsed elsewhere.
    pub whitespace: Option<Whitespace>,
    /// The steps that change its values before they become of its type, in order.
    pub transform: Vec<Transform>,
    /// The value if there is none, or none of the right type.
    pub default: Option<Value>,
    /// How a page without the field is handled.
    pub required: Required,
}

impl Field {
    /// Creates a field with default settings: one text, unless the page's own fields are of another type.
    pub fn new(from: FieldSource) -> Self {
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
            transform: Vec::new(),
            default: None,
            required: Required::No,
        }
    }
}

/// `whitespace`: how white space in a text is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Whitespace {
    /// Each run is replaced by one space.
    Collapse,
    /// Lines are kept as a reader sees them: blocks and `<br>` begin new ones. Within a line each run is replaced by
    /// one space.
    Lines,
    /// White space is kept.
    Keep,
}

/// `required`: how a page without the field is handled. Of several fields, the last of these variants wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Required {
    /// The field is optional.
    #[default]
    No,
    /// A warning is counted; the item is kept.
    Warn,
    /// The page fails and is retried.
    Retry,
    /// The page fails for good.
    Fail,
}

/// The source of a field's values.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldSource {
    /// `css`: a CSS selector in the notation of Scrapy: `h1::text` (the texts directly in it), `h1 ::text` (and all
    /// below), `a::attr(href)`, and without either the element: all its visible text.
    Css(Sited<String>),
    /// `xpath`: what an XPath 1.0 expression finds: elements, attributes and texts, or one text, number or truth value.
    XPath(Sited<String>),
    /// `script`: the values in scripts of this name, and with `path` the values in each that it leads to.
    Script(Sited<String>, Option<Sited<String>>),
    /// `json`: a JSON Pointer (RFC 6901) or a JSONPath (RFC 9535), into a JSON response. A list that it finds is as
    /// many values, unless the kind is JSON.
    Json(Sited<String>),
    /// `jmespath`: the value that a JMESPath expression finds or makes of a JSON response. A list is as many values,
    /// unless the kind is JSON.
    JmesPath(Sited<String>),
    /// `header`: a header field of the response.
    Header(Sited<String>),
    /// `meta`: the content of `<meta>` by its `name` or `property`, as `og:title`.
    Meta(Sited<String>),
    /// `json_ld`: the objects of this `@type` in the page's JSON-LD, except those nested in another one, and the values
    /// that `path` finds in each.
    JsonLd(Sited<String>, Option<Sited<String>>),
    /// `microdata`: the items of this type (the last part of `itemtype`) in the page's microdata, except those nested
    /// in another one, and the values that `path` finds in each; they have the shape of JSON-LD.
    Microdata(Sited<String>, Option<Sited<String>>),
    /// `table`: the rows of the tables that a selector matches, each an object by the table's headings.
    Table(Selector),
    /// `page`: a property of the page itself.
    Page(PageField),
    /// `carried`: a value that the pages that led here passed on.
    Carried(String),
    /// `each` and `fields`: an object for each match of a selector, with fields looked for inside it.
    Each(Selector, Vec<(String, Field)>),
}

/// `type`: the type of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Text with normalised white space. Values of JSON are kept as they are.
    #[default]
    Text,
    /// The first number in the text, as people write it: `1,234.50 €` and `1.234,50` are 1234.5. A single `.` or `,` is
    /// the decimal mark unless exactly three digits follow: `1.234` is 1234, but `0.125` is not whole. An ambiguous
    /// text is no number. A text in JSON is read as programs write numbers.
    Number,
    /// A whole number.
    Integer,
    /// `true`: yes, true, on, 1, in stock, available, or the mere presence of an element or attribute without text.
    /// `false`: no, false, off, 0, out of stock, sold out, unavailable, not available, discontinued. The values of
    /// schema.org are recognized, too.
    Boolean,
    /// A date, or a date and time, written as RFC 3339 does: `2024-05-01`, or `2024-05-01T10:00:00Z`; UTC if no offset
    /// is given.
    Date,
    /// An absolute URL, resolved with the page's `<base>`; canonical, if its scheme is `http` or `https`.
    Url,
    /// The element's HTML.
    Html,
    /// Text that is JSON.
    Json,
}

impl Kind {
    /// The name in spider files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A property of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PageField {
    /// Its title.
    Title,
    /// Its description in `<meta>`.
    Description,
    /// Its canonical URL, as the page states it.
    Canonical,
    /// Its language.
    Language,
    /// The number of its links.
    LinkCount,
    /// Its links, absolute, each once.
    Links,
    /// Its main text, without navigation and similar parts.
    Text,
    /// Its main part as Markdown.
    Markdown,
    /// A 64-bit simhash of its main text, by which near-duplicates are found.
    Simhash,
    /// Its URL, after redirects.
    Url,
    /// The uses that its publisher allows or reserves.
    Usage,
}

impl PageField {
    /// The default fields of every page.
    pub(crate) const DEFAULTS: [Self; 5] =
        [Self::Title, Self::Description, Self::Canonical, Self::Language, Self::LinkCount];
    /// All page fields.
    pub const ALL: [Self; 11] = [
        Self::Title,
        Self::Description,
        Self::Canonical,
        Self::Language,
        Self::LinkCount,
        Self::Links,
        Self::Text,
        Self::Markdown,
        Self::Simhash,
        Self::Url,
        Self::Usage,
    ];

    /// The type of its values, regardless of the spider.
    pub fn kind(self) -> Kind {
        match self {
            Self::LinkCount => Kind::Integer,
            Self::Usage => Kind::Json,
            Self::Canonical | Self::Links | Self::Url => Kind::Url,
            Self::Title
            | Self::Description
            | Self::Language
            | Self::Text
            | Self::Markdown
            | Self::Simhash => Kind::Text,
        }
    }

    /// Whether it is found only in the tree of a page.
    pub fn needs_tree(self) -> bool {
        matches!(self, Self::Text | Self::Markdown | Self::Simhash)
    }

    /// The name in spider files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
