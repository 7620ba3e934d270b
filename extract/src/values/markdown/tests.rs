use encoding_rs::UTF_8;
use scraper::Html;
use trawl_common::settings::Urls;
use trawl_common::web::url::CanonicalUrl;

use super::*;

fn of(page: &str) -> String {
    let url = CanonicalUrl::parse("http://site.example/docs/page").unwrap();
    let urls = Urls::default();
    markdown(Html::parse_document(page).root_element(), &Base::new(None, &url, &urls, UTF_8))
}

#[test]
fn headings_paragraphs_and_marks_are_written_in_markdown() {
    let page = "<nav>Home</nav><article><h1>On <em>tea</em></h1><p>Tea is <b>drunk </b>all over\n the <i>world</i>.<p>It is \
        <code>hot</code>, and <s>never</s> <strong><b>cold</b></strong>.<hr><h3></h3><h2>Sorts</h2>many</article>";
    assert_eq!(
        of(page),
        "# On *tea*\n\nTea is **drunk** all over the *world*.\n\nIt is `hot`, and ~~never~~ **cold**.\n\n---\n\n## Sorts\n\nmany"
    );
}

#[test]
fn links_and_images_have_absolute_urls() {
    assert_eq!(
        of("<p>See <a href='../a_(b)'>the <b>next</b> one</a>, <a href='javascript:x()'>not this</a>, \
            <a href=mailto:a@b.example>write</a>.<a href=/x><img src=i.png alt='An [image]'></a><img src='data:x'><a href=/y></a>"),
        "See [the **next** one](http://site.example/a_\\(b\\)), not this, [write](mailto:a@b.example).\
         [![An \\[image\\]](http://site.example/docs/i.png)](http://site.example/x)"
    );
}

#[test]
fn lists_are_nested_and_numbered() {
    assert_eq!(
        of(
            "<p>Take<ul><li>water<li>leaves<ol start=9><li>black<li><p>green</p><p>or not</p></ol><li><ul><li>deep</ul></ul><p>and wait"
        ),
        "Take\n\n- water\n- leaves\n  9. black\n  10. green\n\n      or not\n-\n  - deep\n\nand wait"
    );
}

#[test]
fn quotes_and_code_keep_their_lines() {
    assert_eq!(
        of(
            "<blockquote><p>One<p>Two<br>three</blockquote><pre><code class='x language-rust'>fn main() {\n    ```\n}\n</code></pre>"
        ),
        "> One\n>\n> Two\\\n> three\n\n````rust\nfn main() {\n    ```\n}\n````"
    );
}

#[test]
fn tables_of_data_are_tables_and_others_are_what_stands_in_them() {
    assert_eq!(
        of("<table><caption>Prices</caption><tr><th>Sort<th>Price<tr><td>a | b<td>1<br>2<tr><td>c</table>"),
        "Prices\n\n| Sort | Price |\n| --- | --- |\n| a \\| b | 1 2 |\n| c |"
    );
    assert_eq!(of("<table><tr><td><h2>Title</h2><td>text</table>"), "## Title\n\ntext");
}

#[test]
fn text_that_looks_like_markdown_is_escaped() {
    assert_eq!(
        of(
            "<p># no title<p>1. no item<p>- nor this<p>a*b*, snake_case, _x_, [y], &lt;z&gt;, &amp;amp; \\ `q`"
        ),
        "\\# no title\n\n1\\. no item\n\n\\- nor this\n\na\\*b\\*, snake_case, \\_x\\_, \\[y\\], \\<z>, \\&amp; \\\\ \\`q\\`"
    );
}

#[test]
fn marks_at_the_ends_of_a_paragraph_are_escaped_and_repeated_breaks_are_one() {
    assert_eq!(of("<p>*a* \\<p>[b]<br> <br/>c<br>"), "\\*a\\* \\\\\n\n\\[b\\]\\\nc");
    assert_eq!(of("<p>a<b> <br>b<br></b>c"), "a\\\n**b**\\\nc");
}

#[test]
fn what_is_no_text_stands_in_no_list() {
    assert_eq!(of("<ul><li>a<script>x()</script><li>b</li><script>y()</script></ul>"), "- a\n- b");
}

#[test]
fn a_deep_page_is_written_in_linear_size() {
    let page = format!("{}<p>deep", "<blockquote><ul><li>".repeat(100));
    assert!(of(&page).len() < 4_000);
}
