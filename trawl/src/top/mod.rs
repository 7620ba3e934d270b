//! `trawl top`: a view of the fleet that is redrawn continually.

mod frame;
mod row;
mod screen;
mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use futures::StreamExt;
use screen::{Key, Screen};
use tokio::time::sleep_until;
use trawl_cli::{Fail, Global, Outcome, Signals, print_json};
use trawl_common::duration;
use trawl_common::exit::Exit;
use view::View;

use crate::backend::{Backend, Where};

/// The command-line arguments of `trawl top`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Draw it again every TIME; q or Ctrl-C ends it
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "1s")]
    every: Duration,
    /// Print it once and end, as where standard output is no terminal
    #[arg(long)]
    once: bool,
    /// Print one JSON object and end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// The last view, and the error that prevents a newer one.
#[derive(Default)]
struct Shown {
    view: Option<(View, Instant)>,
    trouble: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::look(&global, &self.place).await?;
        if self.json || self.once || !std::io::stdout().is_terminal() {
            let view = View::ask(&backend).await?;
            match self.json {
                true => print_json(&view),
                false => frame::whole(&view).iter().for_each(|row| anstream::println!("{row}")),
            }
            return Ok(Exit::Ok);
        }
        let signals = Signals::listen().map_err(Fail::run)?;
        let mut screen = Screen::open().map_err(Fail::run)?;
        let drawing = self.draw(&global, &backend, &mut screen);
        tokio::select! {
            ended = drawing => ended.map(|()| Exit::Ok),
            () = signals.stop().cancelled() => Ok(Exit::Ok),
        }
    }

    /// Draws until the user quits. While a server is unavailable, the last state stays on the screen.
    async fn draw(&self, global: &Global, backend: &Backend, screen: &mut Screen) -> Result<(), Fail> {
        let (mut shown, mut keys) = (Shown::default(), Screen::keys());
        let mut next = tokio::time::Instant::now();
        let mut asking = Box::pin(self.ask(global, backend, next));
        loop {
            tokio::select! {
                asked = &mut asking => {
                    shown.take(asked);
                    next = (next + self.every).max(tokio::time::Instant::now());
                    asking = Box::pin(self.ask(global, backend, next));
                }
                key = keys.next() => match key {
                    Some(Key::End) | None => return Ok(()),
                    Some(Key::Redraw) => {}
                },
            }
            screen.draw(|width, height| shown.frame(width, height)).map_err(Fail::run)?;
        }
    }

    /// Returns the view at `at`. A state file is opened again each time, because the state of its hosts is
    /// read when it is opened.
    async fn ask(&self, global: &Global, backend: &Backend, at: tokio::time::Instant) -> Result<View, Fail> {
        sleep_until(at).await;
        match self.place.is_file() {
            true => View::ask(&Backend::look(global, &self.place).await?).await,
            false => View::ask(backend).await,
        }
    }
}

impl Shown {
    fn take(&mut self, asked: Result<View, Fail>) {
        match asked {
            Ok(mut view) => {
                if let Some((before, since)) = &self.view {
                    view.pace_since(before, since.elapsed());
                }
                (self.view, self.trouble) = (Some((view, Instant::now())), None);
            }
            Err(fail) => self.trouble = Some(fail.message),
        }
    }

    fn frame(&self, width: usize, height: usize) -> Vec<String> {
        let trouble = self.trouble.as_ref().map(|trouble| match &self.view {
            Some((_, since)) => {
                format!("{trouble}; trying again, this is of {} s ago", since.elapsed().as_secs())
            }
            None => format!("{trouble}; trying again"),
        });
        frame::fitted(self.view.as_ref().map(|(view, _)| view), trouble.as_deref(), width, height)
    }
}
