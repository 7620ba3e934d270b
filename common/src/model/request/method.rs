//! The method of a request.

use serde::{Deserialize, Serialize};

/// An HTTP method (RFC 9110 9, RFC 5789).
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

/// The error for a text that names none of these methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a method is GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")]
pub struct UnknownMethod;

impl Method {
    /// Returns the method as it is sent.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether the target of a redirect with this status is requested by GET, without the body (RFC 9110
    /// 15.4): after a 303, and after a 301 or 302 to a POST, as in all clients.
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

    /// Parses a name in upper or lower case.
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
