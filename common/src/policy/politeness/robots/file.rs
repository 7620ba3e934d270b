//! A `robots.txt` as fetched.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base64;
use crate::frontier::outcome::Class;

/// A robots.txt as its origin answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsFile {
    /// The status of the answer; 0 if there was none.
    pub status: u16,
    /// The start of the file, or the reason why there was no answer.
    #[serde(with = "base64")]
    pub body: Bytes,
    /// The class of the failure, if there was no answer.
    pub failure: Option<Class>,
}
