//! Tests of CSS that professionals expect.

use serde_json::json;

use super::*;

#[test]
fn an_element_may_be_chosen_by_what_is_in_it() {
    let page = "<table><tr><th>Old<td>1<tr><th class=p>Price<td>2</table><ul><li>a<li><a href=x>b</a></ul>";
    for (css, expected) in [
        ("tr:has(th.p) td", json!(["2"])),
        ("li:has(> a[href])", json!(["b"])),
        ("li:not(:has(a))", json!(["a"])),
        ("th:has(+ td)", json!(["Old", "Price"])),
        (":is(ul, table):has(li) li:has(a)::text", json!([])),
    ] {
        assert_eq!(value(&format!("{{ css = '{css}', list = true }}"), page), expected, "{css}");
    }
}
