//! Scripts of this program and of spiders in a page.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{PageError, Tab, parsed};

/// The world of this program's scripts: the page's own cannot change what is called there.
const WORLD: &str = "trawl";

/// The answer to `Runtime.evaluate`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: Returned,
    exception_details: Option<Thrown>,
}

#[derive(Deserialize)]
struct Returned {
    value: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Thrown {
    text: String,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    description: Option<String>,
    value: Option<Value>,
}

impl Tab {
    /// Returns the value of an expression in a world of its own.
    ///
    /// # Errors
    /// Fails if it throws, or the page has gone to another document meanwhile.
    pub(super) async fn evaluate_apart<T: DeserializeOwned>(&mut self, script: &str) -> Result<T, PageError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: i64,
        }
        let create = json!({ "frameId": self.target, "worldName": WORLD });
        let world: World = parsed(&self.call("Page.createIsolatedWorld", create).await?)?;
        let value = self.run(json!({
            "contextId": world.execution_context_id,
            "expression": script,
            "returnByValue": true,
        }));
        let value = value.await?;
        serde_json::from_str(value.as_deref().unwrap_or(RawValue::NULL).get())
            .map_err(|error| PageError::Refused(error.to_string()))
    }

    /// Runs a script of the spider among those of the page: the body of an `async` function, whose end is waited for.
    ///
    /// # Errors
    /// Fails if it throws.
    pub async fn evaluate(&mut self, script: &str) -> Result<(), PageError> {
        let expression = format!("(async () => {{\n{script}\n}})().then(() => null)");
        let run = json!({ "expression": expression, "awaitPromise": true, "userGesture": true });
        match self.run(run).await {
            // It has led the page to another document.
            Ok(_) | Err(PageError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn run(&mut self, evaluate: Value) -> Result<Option<Box<RawValue>>, PageError> {
        let Evaluated { result, exception_details } =
            parsed(&self.call("Runtime.evaluate", evaluate).await?)?;
        match exception_details {
            None => Ok(result.value),
            Some(Thrown { text, exception }) => {
                let described = exception.and_then(|Exception { description, value }| {
                    description.or_else(|| value?.as_str().map(str::to_owned))
                });
                let described = described.unwrap_or(text);
                // The rest is where in the script.
                Err(PageError::Threw(described.lines().next().unwrap_or_default().to_owned()))
            }
        }
    }
}
