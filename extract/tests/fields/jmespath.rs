//! Tests of JMESPath.

use serde_json::json;

use super::*;

fn found(expression: &str, document: &Value) -> Value {
    let file = format!("[fields]\nx = {{ jmespath = {}, type = 'json' }}\n", Value::from(expression));
    items(&file, &response("application/json", document.to_string())).remove(0)["x"].clone()
}

#[test]
fn expressions_find_and_make_values() {
    let document = json!({
        "shops": [
            {"name": "A", "city": {"name": "Ulm"}, "hats": [{"n": 1, "price": 9.5}, {"n": 2, "price": 12}]},
            {"name": "B", "city": null, "hats": []},
            {"name": "C", "city": {"name": "Bonn"}, "hats": [{"n": 3, "price": 7}]},
        ],
        "a-b": "x",
    });
    for (expression, expected) in [
        ("shops[0].name", json!("A")),
        ("shops[-1].city.name", json!("Bonn")),
        ("shops[*].city.name", json!(["Ulm", "Bonn"])),
        ("shops[].hats[].n", json!([1, 2, 3])),
        ("shops[?city].name", json!(["A", "C"])),
        ("shops[].hats[?price < `10`].n[]", json!([1, 3])),
        ("shops[].hats[] | [?price > `8`] | [0].n", json!(1)),
        (
            "shops[*].{shop: name, count: length(hats)}",
            json!([{"shop": "A", "count": 2}, {"shop": "B", "count": 0}, {"shop": "C", "count": 1}]),
        ),
        ("sort_by(shops[].hats[], &price)[0].n", json!(3)),
        ("max_by(shops[].hats[], &price).n", json!(2)),
        ("sum(shops[].hats[].price)", json!(28.5)),
        ("join(', ', shops[].name)", json!("A, B, C")),
        ("shops[::2].name", json!(["A", "C"])),
        ("shops[::-1].name", json!(["C", "B", "A"])),
        ("\"a-b\"", json!("x")),
        ("missing || 'none'", json!("none")),
        ("shops[1].city && 'yes'", json!(null)),
        ("keys(shops[0].city)", json!(["name"])),
        ("abs('x')", json!(null)),
    ] {
        assert_eq!(found(expression, &document), expected, "{expression}");
    }
    let file = "[fields]\nnames = { jmespath = 'shops[].name', list = true }\nfirst = { jmespath = 'shops[].name' }\n\
                cheap = { jmespath = 'min(shops[].hats[].price)', type = 'number' }\n";
    assert_eq!(
        items(file, &response("application/json", document.to_string())),
        [json!({"names": ["A", "B", "C"], "first": "A", "cheap": 7})]
    );
    let step =
        "{ css = 'p::attr(data-x)', list = true, transform = [{ jmespath = 'a[?b].b' }], type = 'integer' }";
    assert_eq!(value(step, "<p data-x='{\"a\": [{\"b\": 1}, {}, {\"b\": 2}]}'>"), json!([1, 2]));
}

#[test]
fn mistakes_of_expressions_have_their_places() {
    for (expression, expected) in [
        ("a.", "a name, `*`, `[` or `{` is wanted at its end"),
        ("a[", "a number, `*` or `?` is wanted at its end"),
        ("a[?b", "`]` is wanted at its end"),
        ("lenght(@)", "there is no function `lenght`: did you mean `length`?"),
        ("length()", "`length()` has 1 arguments, not 0"),
        ("sort_by(a, b)", "argument 2 of `sort_by()` is a reference, as `&price`"),
        ("a § b", "`§` does not belong here"),
        ("a b", "the end is wanted before `b`"),
    ] {
        let file = format!("[fields]\na = {{ jmespath = {} }}", Value::from(expression));
        one(&file, &format!("2:18 fields.a: `{expression}` is not a JMESPath expression: {expected}"));
    }
    let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(mistakes(&format!("[fields]\na = {{ jmespath = '{deep}' }}")).len(), 1);
}

#[test]
fn no_expression_doubles_a_list_without_end() {
    let expression = vec!["[@[], @[]][]"; 40].join(" | ");
    let file = format!("[fields]\na = {{ jmespath = '{expression}' }}");
    let url = "https://example.com/".parse().unwrap();
    let extractor = Extractor::new(&spider(&file)).unwrap();
    let failure = extractor
        .extract(&url, &response("application/json", "[1, 2]"), &AtomicBool::new(false))
        .unwrap_err();
    assert!(failure.to_string().contains("makes too many values"), "{failure}");
}

/// Runs the cases of <https://github.com/jmespath/jmespath.test>, whose folder `tests` is named by `JMESPATH_TEST`.
#[test]
#[ignore = "needs the cases of the specification"]
fn the_cases_of_the_specification_hold() {
    let (mut equal, mut wrong) = (0, Vec::new());
    for file in std::fs::read_dir(std::env::var("JMESPATH_TEST").unwrap()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let suites: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for suite in suites.as_array().into_iter().flatten() {
            for case in
                suite["cases"].as_array().into_iter().flatten().filter(|case| case.get("bench").is_none())
            {
                let expression = case["expression"].as_str().unwrap();
                let text =
                    format!("[fields]\nx = {{ jmespath = {}, type = 'json' }}\n", Value::from(expression));
                let is_sound = mistakes(&text).is_empty();
                let given = response("application/json", suite["given"].to_string());
                let holds = match case.get("result") {
                    None if case["error"] == "syntax" || !is_sound => !is_sound,
                    None => is_sound && items(&text, &given)[0]["x"].is_null(),
                    Some(expected) => {
                        let expected = if expected.is_null() { &Value::Null } else { expected };
                        is_sound && is_same(&items(&text, &given)[0]["x"], expected)
                    }
                };
                if holds { equal += 1 } else { wrong.push(format!("{}: {expression}", path.display())) }
            }
        }
    }
    eprintln!("{equal} hold, {} do not:\n{}", wrong.len(), wrong.join("\n"));
    assert!(wrong.is_empty());
}

/// Whether two values are equal, `1` and `1.0` too.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        (one, other) => one == other,
    }
}
