//! Pictures of a page.

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::{DOCUMENT_TIMEOUT, PageError, Tab, parsed};

/// Maximum height of a picture in pixels: its size must stay below that of a message.
const MAX_HEIGHT: f64 = 8_000.0;

impl Tab {
    /// Returns a picture of the page from its top on, as PNG.
    ///
    /// # Errors
    /// Fails if it does not come within a few seconds.
    pub async fn picture(&mut self) -> Result<Vec<u8>, PageError> {
        timeout(DOCUMENT_TIMEOUT, self.capture()).await.map_err(|_| PageError::Endless)?
    }

    async fn capture(&mut self) -> Result<Vec<u8>, PageError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Layout {
            css_content_size: Size,
        }
        #[derive(Deserialize)]
        struct Size {
            width: f64,
            height: f64,
        }
        #[derive(Deserialize)]
        struct Captured {
            data: String,
        }
        let Layout { css_content_size: Size { width, height } } =
            parsed(&self.call("Page.getLayoutMetrics", json!({})).await?)?;
        let (width, height) = (width.clamp(1.0, MAX_HEIGHT), height.clamp(1.0, MAX_HEIGHT));
        let capture = json!({
            "format": "png",
            "captureBeyondViewport": true,
            "clip": { "x": 0, "y": 0, "width": width, "height": height, "scale": 1 },
        });
        let Captured { data } = parsed(&self.call("Page.captureScreenshot", capture).await?)?;
        BASE64.decode(data.as_bytes()).map_err(|error| PageError::Refused(error.to_string()))
    }
}
