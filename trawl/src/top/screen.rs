//! A terminal's second screen, drawn over from the top, and the keys that are pressed there.

use std::io::{self, Write};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, EventStream, KeyCode, KeyModifiers};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use futures::{Stream, StreamExt, future};

/// The screen; dropped, it leaves the terminal as it was.
pub(super) struct Screen(());

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// To end.
    End,
    /// To see it in the terminal's new size.
    Redraw,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self(());
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// What is pressed. It ends where the terminal does.
    pub(super) fn keys() -> impl Stream<Item = Key> + Unpin {
        let keys = EventStream::new().take_while(|event| future::ready(event.is_ok()));
        keys.filter_map(|event| future::ready(event.ok().as_ref().and_then(key)))
    }

    /// Draws rows over what is there; each is cleared to its end, and so is what is below the last. Nothing flickers, as all of it is
    /// written at once.
    pub(super) fn draw(&mut self, rows: impl FnOnce(usize, usize) -> Vec<String>) -> io::Result<()> {
        let (width, height) = size()?;
        let (mut out, mut drawn) = (io::stdout().lock(), Vec::new());
        let is_plain = AutoStream::choice(&out) == ColorChoice::Never;
        queue!(drawn, MoveTo(0, 0))?;
        for (at, row) in rows(width.into(), height.into()).iter().enumerate() {
            // No line is ended below the last one: the terminal would scroll.
            queue!(drawn, MoveTo(0, at as u16))?;
            match is_plain {
                true => write!(drawn, "{}", strip_str(row))?,
                false => write!(drawn, "{row}")?,
            }
            queue!(drawn, Clear(ClearType::UntilNewLine))?;
        }
        queue!(drawn, Clear(ClearType::FromCursorDown))?;
        out.write_all(&drawn)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no care.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

fn key(event: &Event) -> Option<Key> {
    match event {
        Event::Resize(..) => Some(Key::Redraw),
        Event::Key(key) => {
            let is_end = match key.code {
                KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
                KeyCode::Char('c' | 'd') => key.modifiers.contains(KeyModifiers::CONTROL),
                _ => false,
            };
            is_end.then_some(Key::End)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn q_escape_and_control_c_end_it_and_other_keys_do_nothing() {
        let pressed = |code, modifiers| key(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::End));
        assert_eq!(pressed(KeyCode::Esc, KeyModifiers::NONE), Some(Key::End));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::End));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(&Event::Resize(80, 24)), Some(Key::Redraw));
    }
}
