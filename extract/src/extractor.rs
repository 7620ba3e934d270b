//! Reads responses as a spider's file says.

use std::sync::atomic::AtomicBool;

use encoding_rs::UTF_8;
use scraper::Html;
use serde_json::Value;
use trawl_common::frontier::Request;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::mistake::Mistake;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::settings::Urls;
use trawl_common::spider::{Carried, Formats, Spider};
use trawl_common::web::response::Response;
use trawl_common::web::sniff::{MediaKind, is_csv, is_html, is_json, is_xml};
use trawl_common::web::url::CanonicalUrl;

use crate::context::{Context, Within};
use crate::document::base::Base;
use crate::document::elements::Elements;
use crate::document::markup::without_templates;
use crate::document::page::Page;
use crate::document::stream::Reader;
use crate::document::{charset, csv, json, json_ld, script, tree, xml};
use crate::extraction::Extraction;
use crate::items;
use crate::pages;
use crate::plan::Plan;
use crate::plan::planner::Planner;
use crate::usage;

/// Reads items and links from responses as a spider's file says. One extractor serves all threads.
#[derive(Debug)]
pub struct Extractor {
    pub(crate) plan: Plan,
    reader: Reader,
    urls: Urls,
    formats: Formats,
}

/// The format of a response, which is read as HTML or JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    Html,
    Xml,
    Json,
    Csv,
}

/// A parsed document.
#[derive(Clone, Copy)]
pub(crate) struct Parsed<'a> {
    /// The findings of the page that single tags give; empty unless it is HTML.
    pub(crate) page: &'a Page<'a>,
    /// The tree, if a field needs one.
    pub(crate) tree: Option<&'a Html>,
    /// The elements of the tree.
    pub(crate) elements: &'a Elements<'a>,
    /// The document, if it is JSON.
    pub(crate) json: Option<&'a Value>,
}

impl Extractor {
    /// Creates the extractor of a spider. The error has all mistakes of its selectors, patterns and paths.
    ///
    /// This decides which fields the streaming pass answers and which need a tree.
    pub fn new(spider: &Spider) -> Result<Self, Vec<Mistake>> {
        let mut planner = Planner::new(spider, true);
        // An XML document has a tree alone, and a page with a tree is not read twice.
        if planner.plan.needs_tree || spider.formats.xml.is_some() {
            planner = Planner::new(spider, false);
        }
        let (urls, formats) = (spider.urls.clone(), spider.formats.clone());
        Ok(Self { urls, formats, ..Self::from_planner(planner)? })
    }

    pub(crate) fn from_planner(
        Planner { plan, wanted, mistakes, .. }: Planner,
    ) -> Result<Self, Vec<Mistake>> {
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let (urls, formats) = Default::default();
        Ok(Self { plan, reader: Reader::new(wanted), urls, formats }.named(&RobotsName::default()))
    }

    /// Sets the name by which pages address the crawler, instead of `trawl`.
    pub fn named(mut self, name: &RobotsName) -> Self {
        self.reader.wanted.robots_name = name.as_str().to_ascii_lowercase();
        self
    }

    /// Whether all pages of the spider are requests with data ([`Spider::tracks`]).
    pub fn tracks(&self) -> bool {
        self.plan.tracks
    }

    /// Whether a tree is built of every page, which takes several times as long as the streaming pass alone.
    pub fn needs_tree(&self) -> bool {
        self.plan.needs_tree
    }

    /// Whether a response has a type that this spider reads: HTML, JSON if the spider extracts from it, and what its
    /// file names beside them.
    pub fn reads(&self, response: &Response) -> bool {
        self.medium(response).is_some()
    }

    /// Reads the page that `url` answered with. A field without a value is null, or an empty list.
    ///
    /// Text is free of control characters and at most [`MAX_TEXT`](crate::MAX_TEXT) long; an item is less than 8 MB of
    /// JSON.
    ///
    /// Does no I/O, and takes time proportional to the page. A page whose tree would take longer is a failure of class
    /// `parse`, and so is one that is not finished some time after `given_up` is set.
    pub fn extract(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        given_up: &AtomicBool,
    ) -> Result<Extraction, Failure> {
        self.extract_from(url, response, None, given_up)
    }

    /// Like [`Extractor::extract`], for the answer to a request, whose data is what other pages pass on.
    pub fn extract_from(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        request: Option<&Request>,
        given_up: &AtomicBool,
    ) -> Result<Extraction, Failure> {
        let mut tree = None;
        let mut json = None;
        let medium = self.medium(response);
        if medium == Some(Medium::Csv) {
            let (text, _) = charset::decode(&response.body, response.content_type());
            let delimiter = self.formats.csv.as_ref().and_then(|csv| csv.delimiter);
            json = Some(csv::parse(&text, delimiter).map_err(|reason| Failure::new(Class::Parse, reason))?);
        }
        if medium == Some(Medium::Xml) {
            let (text, _) = charset::decode(&response.body, response.content_type());
            let namespaces = self.formats.xml.as_ref().map(|xml| &xml.namespaces[..]);
            tree = Some(xml::build(&text, namespaces.unwrap_or_default(), given_up)?);
        }
        if medium == Some(Medium::Json) {
            let read = json::parse(&charset::decode_json(&response.body, response.content_type()));
            let is_said = MediaKind::new(response.content_type()) == MediaKind::Json;
            json = match read {
                // Only its beginning made it pass for JSON.
                Err(_) if !is_said => None,
                read => Some(read.map_err(|reason| Failure::new(Class::Parse, reason))?),
            };
        }
        let is_html = json.is_none() && tree.is_none();
        let mut page = Page::default();
        if is_html {
            let (html, encoding) = charset::decode(&response.body, response.content_type());
            let html = without_templates(&html);
            page.encoding = Some(encoding);
            match self.plan.needs_tree {
                true => tree = Some(tree::build(&html, given_up)?),
                false => page = Page { encoding: page.encoding, ..self.reader.read(&html)? },
            }
        }
        let elements = tree.as_ref().map(|tree| Elements::new(tree, &self.plan.selectors));
        let elements = elements.unwrap_or_default();
        if is_html {
            elements.iter().for_each(|element| page.add(element, &self.reader.wanted));
        }
        let parsed = Parsed { page: &page, tree: tree.as_ref(), elements: &elements, json: json.as_ref() };
        self.look(url, response, request, parsed, given_up)
    }

    fn medium(&self, response: &Response) -> Option<Medium> {
        let (content_type, body) = (response.content_type(), &response.body);
        let media = [
            (Medium::Csv, self.formats.csv.is_some() && is_csv(content_type)),
            (Medium::Json, self.plan.reads_json && is_json(content_type, body)),
            (Medium::Html, is_html(content_type, body)),
            (Medium::Xml, self.formats.xml.is_some() && is_xml(content_type, body)),
            // Such a file has many types.
            (Medium::Csv, self.formats.csv.is_some() && MediaKind::new(content_type) == MediaKind::Text),
        ];
        media.into_iter().find(|(_, holds)| *holds).map(|(medium, _)| medium)
    }

    /// Extracts items and links from a parsed document.
    fn look(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        request: Option<&Request>,
        Parsed { page, tree, elements, json }: Parsed<'_>,
        given_up: &AtomicBool,
    ) -> Result<Extraction, Failure> {
        let url = response.redirected_to.as_ref().unwrap_or(url);
        let came = request.and_then(|request| request.new.data.as_ref()).map(Carried::from_data);
        let context = Context {
            response,
            came: came.as_ref(),
            request,
            url,
            robots_name: &self.reader.wanted.robots_name,
            base: &Base::new(page.base.as_deref(), url, &self.urls, page.encoding.unwrap_or(UTF_8)),
            page,
            json_ld: &json_ld::objects(&page.json_ld, &self.reader.wanted.json_ld),
            scripts: &script::values(&page.scripts, &self.reader.wanted.scripts),
            tree,
            elements,
            json,
            given_up,
            nodes: Default::default(),
            steps: Default::default(),
            microdata: Default::default(),
            text: Default::default(),
        };
        let mut extraction = Extraction::default();
        if let Some(sign) = &self.plan.lapsed
            && sign.matches(&context, Within::All).next().is_some()
        {
            return Ok(Extraction { lapsed: true, ..extraction });
        }
        let mut is_item = true;
        let robots_name = &self.reader.wanted.robots_name;
        let kind = pages::kind(&self.plan.pages, &context, &mut extraction);
        if let Some(follow) = &self.plan.follow {
            let leave = follow.leave(&context, robots_name);
            is_item = leave.index;
            extraction.canonical = follow.elsewhere(&context);
            self.plan.links(kind, follow, &context, leave, &mut extraction)?;
        }
        if is_item && !usage::reserves(response, &page.meta, robots_name, &self.plan.used_for) {
            items::add_items(&self.plan.rules, &context, &mut extraction)?;
        }
        if let Some(paginate) = self.plan.paginate.iter().find(|one| one.is_for(extraction.kind)) {
            paginate.add_next(&context, &mut extraction)?;
        }
        if context.steps.get() > 0 {
            context.goes_on()?;
        }
        Ok(extraction)
    }
}
