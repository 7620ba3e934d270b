//! The method of a request.

use serde::{Deserialize, Serialize};

/// A method (RFC 9110 9, RFC 5789).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[derive(strum::IntoStaticStr, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Method {
    /// GET.
    #[default]
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
}

/// A text that names no method of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")]
pub struct UnknownMethod;

impl Method {
    /// The method as it is sent.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether what a redirect with this status leads to is asked for by GET, without the body (RFC 9110 15.4): after a 303, and where
    /// a POST was answered by 301 or 302, as all clients do.
    pub fn becomes_get(self, status: u16) -> bool {
        match status {
            301 | 302 => self == Self::Post,
            303 => !matches!(self, Self::Get | Self::Head),
            _ => false,
        }
    }
}

impl std::str::FromStr for Method {
    type Err = UnknownMethod;

    /// In letters of either case.
    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        use strum::IntoEnumIterator;
        Self::iter().find(|method| method.as_str().eq_ignore_ascii_case(text)).ok_or(UnknownMethod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_turns_into_a_get_what_clients_turn_into_one() {
        use Method::{Delete, Get, Head, Post, Put};
        let becomes = |status| [Get, Head, Post, Put, Delete].map(|method| method.becomes_get(status));
        for status in [301, 302] {
            assert_eq!(becomes(status), [false, false, true, false, false], "{status}");
        }
        assert_eq!(becomes(303), [false, false, true, true, true]);
        for status in [307, 308] {
            assert_eq!(becomes(status), [false; 5], "{status}");
        }
    }

    #[test]
    fn a_method_is_read_in_letters_of_either_case() {
        assert_eq!("post".parse(), Ok(Method::Post));
        assert_eq!("POST".parse(), Ok(Method::Post));
        assert_eq!("CONNECT".parse::<Method>(), Err(UnknownMethod));
    }
}
