//! The terminal's alternate screen, which is redrawn from the top, and the keys pressed there.

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

/// The alternate screen. Restores the terminal when dropped.
pub(super) struct Screen(());

/// A request from the keyboard or the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Quit.
    End,
    /// Redraw in the terminal's new size.
    Redraw,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self(());
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Returns the keys pressed. The stream ends when the terminal is gone.
    pub(super) fn keys() -> impl Stream<Item = Key> + Unpin {
        let keys = EventStream::new().take_while(|event| future::ready(event.is_ok()));
        keys.filter_map(|event| future::ready(event.ok().as_ref().and_then(key)))
    }

    /// Draws rows over the previous ones; clears each to its end, and the screen below the last. All is
    /// written at once, so nothing flickers.
    pub(super) fn draw(&mut self, rows: impl FnOnce(usize, usize) -> Vec<String>) -> io::Result<()> {
        let (width, height) = size()?;
        let (mut out, mut drawn) = (io::stdout().lock(), Vec::new());
        let is_plain = AutoStream::choice(&out) == ColorChoice::Never;
        queue!(drawn, MoveTo(0, 0))?;
        for (at, row) in rows(width.into(), height.into()).iter().enumerate() {
            // No line break after the last row: the terminal would scroll.
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
        // If the terminal is gone there is nothing to restore.
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
