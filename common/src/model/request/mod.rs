//! Requests: URLs to request in a specified way, with a method, a body, header fields, cookies and data.
//!
//! A [`NewRequest`] is submitted by a spider's program, a task, or the publisher of a message. The frontier stores
//! it as it stores a URL ([`Request`](crate::frontier::Request)).

mod body;
mod failures;
mod form;
mod method;
mod new_request;
mod read;
mod secrets;
mod template;
mod view;

pub use body::Body;
pub use failures::Failures;
pub use form::{FORM, encode_pair};
pub use method::{Method, UnknownMethod};
pub use new_request::{MAX_DATA_BYTES, MAX_REQUEST_BYTES, NewRequest, Pairs};
pub use read::InvalidRequest;
pub use secrets::without_secrets;
pub(crate) use template::placeholder_names;
pub use template::{InvalidTemplate, RequestTemplate, in_texts};
pub use view::RequestView;
