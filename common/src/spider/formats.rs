//! Formats of responses that a spider reads beside HTML and JSON.

/// `[xml]` and `[csv]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// Whether XML is read, as a tree in which elements are found by CSS and XPath.
    pub xml: Option<Xml>,
    /// Whether CSV is read, as a list of objects in which values are found by paths.
    pub csv: Option<Csv>,
}

/// How XML is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xml {
    /// The prefixes by which selectors name namespaces, whatever a document calls them.
    pub namespaces: Vec<(String, String)>,
}

/// How CSV is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Csv {
    /// The mark between columns; found in the first line if `None`.
    pub delimiter: Option<u8>,
}
