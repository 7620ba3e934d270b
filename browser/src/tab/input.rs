//! Input as a person would give it: of the mouse, and of keys.

use serde_json::json;
use trawl_common::spider::PageKey;

use super::{PageError, Tab};

impl Tab {
    /// Clicks at a point of the view.
    pub(super) async fn click_at(&mut self, (x, y): (f64, f64)) -> Result<(), PageError> {
        for (kind, button, buttons) in
            [("mouseMoved", "none", 0), ("mousePressed", "left", 1), ("mouseReleased", "left", 0)]
        {
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event).await?;
        }
        Ok(())
    }

    /// Presses a key and lets it go.
    ///
    /// # Errors
    /// Fails as the page does.
    pub async fn press(&mut self, key: PageKey) -> Result<(), PageError> {
        let name: &str = key.into();
        let (down, text) = if key == PageKey::Enter { ("keyDown", "\r") } else { ("rawKeyDown", "") };
        for (kind, text) in [(down, text), ("keyUp", "")] {
            let event = json!({ "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code(key), "text": text });
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }
}

/// Returns the number that scripts know as `keyCode` (UI Events, appendix A).
fn code(key: PageKey) -> u8 {
    match key {
        PageKey::Backspace => 8,
        PageKey::Tab => 9,
        PageKey::Enter => 13,
        PageKey::Escape => 27,
        PageKey::PageUp => 33,
        PageKey::PageDown => 34,
        PageKey::End => 35,
        PageKey::Home => 36,
        PageKey::ArrowLeft => 37,
        PageKey::ArrowUp => 38,
        PageKey::ArrowRight => 39,
        PageKey::ArrowDown => 40,
        PageKey::Delete => 46,
    }
}
