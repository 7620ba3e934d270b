//! Settings from the environment and from flags, which are texts without a type.

/// The value of a variable or a flag, written as TOML in each way that its text can be meant.
pub(super) struct Given {
    /// The name of the variable, or a note that it is a flag.
    pub(super) name: String,
    keys: Vec<String>,
    /// The TOML texts, one for each way, the likeliest first.
    pub(super) texts: Vec<String>,
}

impl Given {
    pub(super) fn new<'k>(name: &str, keys: impl Iterator<Item = &'k str>, value: &str) -> Self {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        let left = keys.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(".");
        let is_scalar =
            |text: &str| text.parse::<bool>().is_ok() || text.parse::<i64>().is_ok() || is_float(text);
        let list = |write: &dyn Fn(&str) -> String| {
            let parts = value.split(',').filter(|_| !value.trim().is_empty());
            let parts: Vec<String> = parts.map(|part| write(part.trim())).collect();
            format!("[{}]", parts.join(", "))
        };
        let mut values = vec![quoted(value), list(&quoted)];
        if is_scalar(value) {
            values.insert(0, value.to_owned());
        }
        if value.split(',').all(|part| is_scalar(part.trim())) {
            values.push(list(&str::to_owned));
        }
        let texts = values.into_iter().map(|value| format!("{left} = {value}")).collect();
        Self { name: name.to_owned(), keys, texts }
    }

    /// Returns the setting's key, as `fetch.timeout`.
    pub(super) fn key(&self) -> String {
        self.keys.join(".")
    }
}

/// Returns whether TOML reads the text as a number with a fraction.
fn is_float(text: &str) -> bool {
    text.contains('.')
        && text.parse::<f64>().is_ok()
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.".contains(&b))
}
