//! `trawl shell`: fetches a page, and says what selectors find in it as they are typed.

use std::io::IsTerminal;
use std::str::FromStr;
use std::time::Instant;

use anstream::{eprintln, println};
use anstyle::{AnsiColor, Style};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::Value;
use trawl_cli::{ArgumentFlags, Fail, Outcome, SpiderArg, counted};
use trawl_common::exit::Exit;
use trawl_common::settings::Settings;
use trawl_common::text::printable;
use trawl_common::web::url::CanonicalUrl;
use trawl_worker::RenderReport;

use super::show;
use super::trial::{Given, Place, Trial, TrialPage};

/// Maximum length of a displayed value.
const MAX_SHOWN: usize = 400;

const HELP: &str = "\
A line is a selector: CSS (`h1::text`, `a::attr(href)`), or XPath if it begins with `/` or `(`. In JSON it is a JSON
Pointer (`/price/amount`) or JSONPath (`$.authors[*].name`), or else JMESPath. Or it is a whole field as in a spider's
file: `{ css = \".price::text\", type = \"number\" }`.
  :links         the page's links
  :head          its status and header fields
  :fetch URL     another page, relative to this one
  :quit          ends, as Ctrl-D does";

/// The command-line arguments of `trawl shell`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The page: its URL, or a file in which it was saved
    #[arg(value_name = "URL|FILE")]
    page: Place,
    /// Fetch as this spider does: with its header fields, its proxy and its log-in
    #[arg(long, value_name = "FILE|NAME", default_value = "default", hide_default_value = true)]
    spider: SpiderArg,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// The URL that a saved page is from: what its links are relative to
    #[arg(long, value_name = "URL")]
    url: Option<CanonicalUrl>,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    allow_private: bool,
    /// Print the values of each line as a JSON array
    #[arg(long)]
    json: bool,
}

/// A line that was typed.
enum Line {
    Nothing,
    Help,
    Head,
    Fetch(String),
    Quit,
    /// A selector, or a field.
    Field(String),
}

impl FromStr for Line {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Ok(match word {
            "" => Self::Nothing,
            ":help" | ":h" | "?" | "help" => Self::Help,
            ":links" => Self::Field("{ page = \"links\" }".to_owned()),
            ":head" => Self::Head,
            ":fetch" if rest.trim().is_empty() => return Err("`:fetch` needs a URL".to_owned()),
            ":fetch" => Self::Fetch(rest.trim().to_owned()),
            ":quit" | ":q" | "quit" | "exit" => Self::Quit,
            _ => Self::Field(line.to_owned()),
        })
    }
}

impl Args {
    /// Exits with 1 if a line that did not come from a terminal could not be answered.
    pub(crate) async fn run(self, mut settings: Settings) -> Outcome {
        settings.fetch.allow_private |= self.allow_private;
        let folder = self.spider.folder(&settings, self.arguments.arguments()?)?;
        let mut trial = Trial::begin(&self.spider, &folder, settings)?;
        if matches!(self.page, Place::Web(_)) {
            trial.log_in().await?;
        }
        let begun = Instant::now();
        let page =
            self.page.get(&trial, self.url.clone(), &Given::default(), &mut RenderReport::default()).await?;
        self.print_head(&page, begun);
        let answered = self.answer_lines(&trial, page).await;
        trial.end().await;
        answered
    }

    async fn answer_lines(&self, trial: &Trial, mut page: TrialPage) -> Outcome {
        let mut editor = DefaultEditor::new().map_err(Fail::run)?;
        let mut exit = Exit::Ok;
        loop {
            let (back, line) = read_line(editor).await?;
            editor = back;
            let line = match line {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(exit),
                Err(error) => return Err(Fail::run(error)),
            };
            let answered = match line.trim().parse() {
                Ok(Line::Quit) => return Ok(exit),
                Ok(line) => self.answer(trial, &mut page, line).await,
                Err(why) => Err(why),
            };
            if let Err(why) = answered {
                let red = AnsiColor::Red.on_default();
                eprintln!("{red}{}{red:#}", printable(&why, MAX_SHOWN));
                if !std::io::stdin().is_terminal() {
                    exit = Exit::Failed;
                }
            }
        }
    }

    async fn answer(&self, trial: &Trial, page: &mut TrialPage, line: Line) -> Result<(), String> {
        match line {
            Line::Nothing | Line::Quit => {}
            Line::Help => println!("{HELP}"),
            Line::Head => {
                println!("{} {}", page.response.status, page.url);
                for (name, value) in page.response.headers.iter() {
                    println!("{name}: {}", printable(value, MAX_SHOWN));
                }
            }
            Line::Fetch(link) => {
                let landed = page.response.redirected_to.as_ref().unwrap_or(&page.url);
                let url = landed.to_url().join(&link).map_err(|error| format!("{link}: {error}"))?;
                let url = CanonicalUrl::from_url(url).map_err(|error| format!("{link}: {error}"))?;
                let begun = Instant::now();
                *page = trial
                    .fetch(&url, &Given::default(), &mut RenderReport::default())
                    .await
                    .map_err(|fail| fail.message)?;
                self.print_head(page, begun);
            }
            Line::Field(line) => {
                let is_json = page.response.content_type().is_some_and(|kind| kind.contains("json"));
                let field = field(&line, is_json);
                self.print(&trial.values(&page.url, page.response.clone(), &field).await?);
            }
        }
        Ok(())
    }

    fn print_head(&self, TrialPage { url, response, .. }: &TrialPage, begun: Instant) {
        if !self.json {
            show::head(url, response, begun.elapsed());
        }
    }

    fn print(&self, values: &[Value]) {
        if self.json {
            return println!("{}", Value::from(values));
        }
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.lines().for_each(|line| println!("{}", printable(line, MAX_SHOWN)));
        }
        let dim = Style::new().dimmed();
        println!("{dim}{}{dim:#}", counted(values.len() as u64, "value"));
    }
}

/// Reads a line, on a thread of its own: a person takes their time.
async fn read_line(
    mut editor: DefaultEditor,
) -> Result<(DefaultEditor, Result<String, ReadlineError>), Fail> {
    let read = tokio::task::spawn_blocking(move || {
        let line = editor.readline("> ");
        if let Ok(line) = &line {
            // What cannot be remembered is not offered again.
            let _ = editor.add_history_entry(line.as_str());
        }
        (editor, line)
    });
    read.await.map_err(Fail::run)
}

/// Returns the field that a line asks for, as in a spider's file.
fn field(line: &str, is_json: bool) -> String {
    if line.starts_with('{') {
        return line.to_owned();
    }
    let kind = match line.chars().next() {
        Some('/' | '$') if is_json => "json",
        _ if is_json => "jmespath",
        Some('/' | '(') => "xpath",
        _ => "css",
    };
    // A string of JSON is one of TOML.
    format!("{{ {kind} = {}, list = true }}", Value::from(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_selector_of_the_kind_that_it_looks_like_or_a_field() {
        let asked = |line| (field(line, false), field(line, true));
        let (css, jmespath) = asked(r#"a[title="x"]"#);
        assert_eq!(css, r#"{ css = "a[title=\"x\"]", list = true }"#);
        assert_eq!(jmespath, r#"{ jmespath = "a[title=\"x\"]", list = true }"#);
        let (xpath, pointer) = asked("/a/b");
        assert_eq!(xpath, r#"{ xpath = "/a/b", list = true }"#);
        assert_eq!(pointer, r#"{ json = "/a/b", list = true }"#);
        assert_eq!(asked("{ css = 'a' }").0, "{ css = 'a' }");
    }
}
