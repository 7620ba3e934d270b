//! Requests in the body of an API request: a text is a URL.

use std::borrow::Cow;

use trawl_common::frontier::Work;
use trawl_common::request::{Method, NewRequest};
use trawl_common::settings::Urls;
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::given_url::{page, wrong};
use crate::new_tasks::{number, retries, text};
use crate::problem::Problem;

/// Returns the work of a request in the member `urls`, and the canonical URL of its page.
pub(crate) fn asked(new: NewRequest, urls: &Urls) -> Result<(CanonicalUrl, Work), Problem> {
    let url = page("urls", &new.url, urls)?;
    let work = Work::of_request(url.clone(), new).map_err(|error| wrong("urls", url.as_str(), error))?;
    Ok((url, work))
}

/// A URL, or a request for one
pub(crate) enum UrlOrRequest {}

impl PartialSchema for UrlOrRequest {
    fn schema() -> RefOr<Schema> {
        let methods = <Method as strum::IntoEnumIterator>::iter().map(Method::as_str);
        let method = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(methods));
        let object = ObjectBuilder::new()
            .property("url", url())
            .property("method", method.description(Some("GET without it")))
            .property("headers", pairs("Header fields; 16 KiB with the cookies"))
            .property("cookies", pairs("Cookies"))
            .property("body", ObjectBuilder::new().schema_type(Type::String).description(Some("The body, if it is text")))
            .property("base64", ObjectBuilder::new().schema_type(Type::String).description(Some("The body in base64, in its place")))
            .property("data", ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue)
                .description(Some("What the spider's program is given with the page; 64 KiB of JSON at most")))
            .property("unique", text("Of requests for one URL by one method a spider takes in one with it; with the same body without it", 8 * 1024))
            .property("any_status", ObjectBuilder::new().schema_type(Type::Boolean).description(Some("Whether whatever response comes is its page; only a success is one without it")))
            .property("failures", ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["last", "each"]))
                .description(Some("Which failures the spider's program is given in place of a page; none without it")))
            .property("priority", number("Above 0 it is urgent; 0 without it"))
            .property("retries", retries())
            .required("url")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        OneOfBuilder::new().item(url()).item(object).description(Some("A URL, or a request for one")).into()
    }
}

impl ToSchema for UrlOrRequest {
    fn name() -> Cow<'static, str> {
        "UrlOrRequest".into()
    }
}

fn url() -> ObjectBuilder {
    text("The URL", MAX_URL_BYTES)
}

/// The schema of an object of texts, or of a list of pairs.
fn pairs(description: &str) -> OneOfBuilder {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let pair = ArrayBuilder::new().items(text()).min_items(Some(2)).max_items(Some(2));
    OneOfBuilder::new()
        .item(ObjectBuilder::new().additional_properties(Some(RefOr::<Schema>::from(text()))))
        .item(ArrayBuilder::new().items(pair))
        .description(Some(description))
}
