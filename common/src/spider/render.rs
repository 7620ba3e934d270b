//! `render` of a spider: whether a browser runs the scripts of its pages.

/// Whether pages are rendered by a browser before they are read.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum Render {
    /// Pages are read as they are sent.
    #[default]
    Never,
    /// Every page that is HTML is rendered.
    Always,
    /// A page is rendered if it has hardly any text but scripts, or lacks a required field as it is sent.
    Auto,
}

impl Render {
    /// The name of each.
    pub const NAMES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// Whether it takes a browser.
    pub fn needs_browser(self) -> bool {
        self != Self::Never
    }
}
