"""Compares trawl's XPath with lxml's on a folder of HTML pages. Run by `scripts/parsel-diff`.

lxml evaluates each expression on two trees: html5lib's, which is built as trawl's is, so that all differences are those of
XPath; and its own parser's, which a spider of Scrapy sees. Values are compared without white space.

usage: xpath_diff.py EXTRACT FOLDER [PAGES]
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import html5lib
import lxml.html
from lxml import etree

EXPRESSIONS = """
//title/text()
/html/head/title
//h1
//h1//text()
//h2/text()
//h2/@id
//h2[@id]/a/@href
//a/@href
//a[@href]
//a[starts-with(@href, 'http')]/@href
//a[contains(@href, '#')]/@href
//a[contains(@href, '.html') and not(contains(@href, '#'))]/@href
//a[@class]/@class
//a[contains(@class, 'struct')]/text()
//a[contains(concat(' ', normalize-space(@class), ' '), ' struct ')]/@title
//a[not(@title)]/@href
//a[string-length(@href) > 40]/@href
//a[text()]
//a[normalize-space()]
//a[normalize-space(.) = 'Source']/@href
//a[. = 'Source'][1]/@href
(//a)[1]
(//a)[last()]/@href
(//a/@href)[3]
(//a)[position() < 5]/@href
//nav//a/@href
//nav//li/a
//nav//li[1]/a
//nav//ul/li[last()]/a
//nav//ul/li[position() > 1]/a/text()
//ul/li[position() mod 2 = 0]
//div[@id='main-content']//p
//*[@id='main-content']//h2/following-sibling::*[1]
//section[@id]/@id
//section[@id='main-content']/div/@class
//section/h4
//section/h4/text()
//section/h4/a[@class='fn']
//h4[@class='code-header']
//h4//a[contains(@class, 'fn')]/@href
//pre
//pre//code
//pre[contains(@class, 'rust')]
//pre/code//span[@class='kw']/text()
//code[not(ancestor::pre)]
//code/parent::*/@class
//p
//p[1]
//p[last()]
//p/text()[1]
//p//text()[normalize-space()]
//p[code]
//p[code and a]
//p[count(code) > 2]
//p[not(*)]
//p[a]/a/@href
//p/a[1]/@href
//p/following-sibling::p[1]
//p/preceding-sibling::*[1]
//p/ancestor::section[1]/@id
//p/ancestor::*[@id][1]/@id
//h2[contains(., 'Examples')]
//h2[contains(., 'Examples')]/following::pre[1]
//h2/following-sibling::div[1]//a/@href
//h3/preceding::h2[1]
//h2 | //h3
//h2/text() | //h3/text()
//details/summary
//details[@open]/summary//h4
//details/@class
//button/@title
//button[@id='copy-path']/@title
//table//td
//table//tr/td[1]
//table//tr[td]/td[2]
//table//tr[position() > 1]
//dl/dt
//dl/dt/a/@href
//dt/following-sibling::dd[1]
//link[@rel='stylesheet']/@href
//link[contains(@href, '.css')]/@href
//meta[@name='description']/@content
//meta/@name
//meta[@name]/attribute::content
//script[@src]/@src
//script[not(@src)]
//img/@src
//input/@*
//*[@aria-label]/@aria-label
//*[@data-v]/@data-v
//*[@*[contains(., 'rust')]]/@class
//body/*
//body/node()
//comment()
//*[self::h2 or self::h3][@id]/@id
//*[name() = 'h2']/@class
//*[local-name() = 'section']/@id
//h2/@id/..
//span[@class='since']/text()
//a[substring(@href, string-length(@href) - 4) = '.html']/@href
//a[substring-before(@class, ' ')]
//a[translate(@class, 'STRUCT', 'struct') = 'struct']
//a[@href = //link/@href]
//li[a/@href = ../li[1]/a/@href]
//a[sum(preceding-sibling::*/@data-n) = 0][1]
//descendant::h2[1]
//div/descendant-or-self::div[2]/@class
/descendant::a[10]/@href
//h2[1]/ancestor::div[last()]/@class
id('main-content')//h1
count(//a)
count(//p/text())
string(//h1)
normalize-space(//h1)
string-length(normalize-space(//p))
substring-after(//title, ' - ')
substring-before(//title, ' ')
concat(//h1, ' | ', //title)
boolean(//table)
not(//table)
count(//h2) > 3
sum(//td[. = number(.)])
count(//a[@href]) div count(//a)
round(count(//a) div 7) * 10 mod 3
floor(-1.5) + ceiling(2.2)
//p[position() = last() - 1]
//p[lang('en')][1]
//a[@href and (@class or @title)]/@href
//a[@class = 'mod' or @class = 'trait']
//a[@class != 'mod']/@class
//*[count(*) = 0 and string-length(.) > 60]
name(//*[@id][1])
local-name(//body/*[1])
""".strip().splitlines()

HIDDEN = {"script", "style", "noscript", "template"}


def readable(node):
    """The text of an element that trawl's text fields have."""
    parts = []

    def walk(element):
        if not isinstance(element.tag, str):
            return
        if etree.QName(element).localname not in HIDDEN and element.text:
            parts.append(element.text)
        for child in element:
            walk(child)
            if child.tail and etree.QName(element).localname not in HIDDEN:
                parts.append(child.tail)

    walk(node)
    return "".join(parts)


def written(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, str):
        return value
    if isinstance(value.tag, str):
        return readable(value)
    return value.text or ""


def by_lxml(tree, expression):
    # As parsel does, from the root element.
    found = tree.xpath(expression)
    values = found if isinstance(found, list) else [found]
    return [text for text in ("".join(written(value).split()) for value in values) if text]


def trees(path):
    body = path.read_bytes()
    builder = html5lib.HTMLParser(html5lib.treebuilders.getTreeBuilder("lxml"), namespaceHTMLElements=False)
    tree, own = builder.parse(body, scripting=True).getroot(), lxml.html.document_fromstring(body)
    for template in tree.xpath("//template"):
        # trawl leaves out what is in one.
        del template[:]
    for element in tree.xpath("//*[@lang]"):
        # For `lang()`, which knows the attribute of XML alone.
        element.set("{http://www.w3.org/XML/1998/namespace}lang", element.get("lang"))
    return tree, own


def main(program, folder, count):
    pages = sorted(path for path in Path(folder).rglob("*.html") if path.stat().st_size < 400_000)
    pages = pages[:: max(1, len(pages) // count)][:count]
    arguments = [f"x{number}[]:xpath={expression}" for number, expression in enumerate(EXPRESSIONS)]
    names = "".join(f"{path}\n" for path in pages)
    answer = subprocess.run([program, *arguments], input=names, text=True, capture_output=True, check=True)
    equal, own_equal, values, differing, own_differing = 0, 0, 0, Counter(), Counter()
    for path, line in zip(pages, answer.stdout.splitlines(), strict=True):
        fields = json.loads(line)["fields"]
        tree, own_tree = trees(path)
        for number, expression in enumerate(EXPRESSIONS):
            ours = fields[f"x{number}"]
            ours = ["".join(str(value).split()) for value in ours]
            # Without a document type of XML, only the tree of lxml's own parser has IDs.
            theirs = by_lxml(own_tree if expression.startswith("id(") else tree, expression)
            values += len(theirs)
            # The order of attributes is for each to choose.
            if "@*" in expression:
                ours, theirs = sorted(ours), sorted(theirs)
            equal += ours == theirs
            own = by_lxml(own_tree, expression)
            own = sorted(own) if "@*" in expression else own
            own_equal += ours == own
            own_differing[expression] += ours != own
            if ours != theirs:
                differing[expression] += 1
                if differing[expression] == 1:
                    place = next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
                    print(f"{path.name}: {expression}: value {place} of {len(theirs)} (trawl {len(ours)})")
                    print(f"    lxml  {theirs[place : place + 1]}"[:300])
                    print(f"    trawl {ours[place : place + 1]}"[:300])
    total = len(pages) * len(EXPRESSIONS)
    print(f"XPath: {equal} of {total} answers of {len(EXPRESSIONS)} expressions on {len(pages)} pages are lxml's, {values} values")
    print(f"       {own_equal} on the tree of lxml's own parser")
    for expression, number in differing.most_common():
        print(f"       {number} differ: {expression}")
    for expression, number in (+own_differing).most_common():
        print(f"       {number} differ on the tree of lxml's own parser: {expression}")
    sys.exit(bool(differing))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 300)
