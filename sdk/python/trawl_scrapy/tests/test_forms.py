"""Values written as JSON are read back unchanged, or are refused."""

import datetime
import decimal
import json
import unittest
from dataclasses import dataclass

import scrapy
from scrapy.http import JsonRequest, Response
from scrapy.http.cookies import CookieJar

from trawl_scrapy import cookies, requests, typed_json
from trawl_scrapy.recipe import InvalidRecipe, Recipe


@dataclass
class Thing:
    name: str
    parts: list


class Loose(scrapy.Item):
    name = scrapy.Field()


class Opaque:
    pass


class Mine(scrapy.Spider):
    name = "mine"

    def parse_page(self, response):
        pass

    def fails(self, failure):
        pass


def over_the_wire(value):
    return json.loads(json.dumps(value))


class TypedJson(unittest.TestCase):
    def test_values_come_back_with_their_types(self):
        for value in (
            None, True, 1, 1.5, "ä", [1, [2]], {"a": {"b": 1}}, {1: "a", ("x", 2): "b"}, {"$bytes": "no tag"}, {"$item": 1},
            b"\xff\0", (1, (2,)), {1, 2}, frozenset({b"x"}), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            datetime.date(2026, 1, 2), decimal.Decimal("1.10"), Thing("a", [b"b"]), Loose(name=Thing("a", [])),
        ):  # fmt: skip
            found = typed_json.read(over_the_wire(typed_json.write(value)))
            self.assertEqual((found, type(found)), (value, type(value)))

    def test_a_string_of_another_class_is_written_as_a_string(self):
        class Found(str):
            pass

        self.assertEqual(typed_json.write({"a": Found("x")}), {"a": "x"})

    def test_what_has_no_form_is_refused(self):
        @dataclass
        class Local:
            name: str

        for value in (Opaque(), [lambda: 1], {"a": Opaque}, Local("a"), Thing("a", [Opaque()])):
            self.assertRaises(typed_json.NotWritable, typed_json.write, value)

    def test_reading_constructs_items_and_nothing_else(self):
        for name in ("os.system", "subprocess.Popen", "tests.test_forms.Opaque"):
            with self.assertRaisesRegex(ValueError, "no class of items"):
                typed_json.read({"$item": name, "fields": {"name": "x"}})


class Requests(unittest.TestCase):
    def test_a_request_comes_back_with_all_that_it_has(self):
        spider = Mine()
        for request in (
            scrapy.Request("http://a.example/?q=ä"),
            scrapy.Request(
                "http://a.example/", spider.parse_page, "PUT", {"X-One": ["1", "2"]}, b"\xff\0", {"a": "b"}, {"thing": Thing("a", [])},
                "latin-1", -3, True, spider.fails, ["flag"], {"page": (1, 2)},
            ),
            scrapy.FormRequest("http://a.example/", formdata={"a": "ä"}, callback=spider.parse_page),
            JsonRequest("http://a.example/", data={"a": [1]}, dumps_kwargs={"sort_keys": True}),
        ):  # fmt: skip
            found = requests.read(over_the_wire(requests.write(request, spider)), spider)
            self.assertIs(type(found), type(request))
            self.assertEqual(found.to_dict(spider=spider), request.to_dict(spider=spider))

    def test_what_goes_without_saying_is_not_said(self):
        self.assertEqual(requests.write(scrapy.Request("http://a.example/"), Mine()), {"url": "http://a.example/"})

    def test_the_proxy_of_this_worker_stays_here_and_one_of_the_spiders_own_travels(self):
        ours = scrapy.Request(
            "http://a.example/", headers={"Proxy-Authorization": "x"}, meta={"_scheme_proxy": True, "proxy": "http://127.0.0.1:9"}
        )
        self.assertEqual(requests.write(ours, Mine()), {"url": "http://a.example/"})
        own = requests.write(scrapy.Request("http://a.example/", meta={"proxy": "http://p.example"}), Mine())
        self.assertEqual(own["meta"], {"proxy": "http://p.example"})

    def test_a_callback_that_is_no_method_of_the_spider_is_refused(self):
        self.assertRaises(ValueError, requests.write, scrapy.Request("http://a.example/", lambda response: None), Mine())

    def test_reading_makes_requests_and_nothing_else(self):
        self.assertRaises(ValueError, requests.read, {"url": "http://a.example/", "_class": "subprocess.Popen"}, Mine())


class Cookies(unittest.TestCase):
    def test_a_session_goes_along_with_all_that_the_site_has_said_of_it(self):
        request = scrapy.Request("http://shop.example/a")
        headers = {"Set-Cookie": ["id=1; Path=/a; HttpOnly", "lang=en; Max-Age=60; Domain=shop.example"]}
        jar = CookieJar()
        jar.extract_cookies(Response(request.url, headers=headers), request)
        found = cookies.read(over_the_wire(cookies.write({None: jar, 7: jar, "none": CookieJar()})))
        self.assertEqual(set(found), {None, 7})
        again = scrapy.Request("http://shop.example/a/b")
        found[7].add_cookie_header(again)
        self.assertEqual(again.headers["Cookie"], b"id=1; lang=en")
        self.assertEqual([vars(cookie) for cookie in found[7]], [vars(cookie) for cookie in jar])


class Recipes(unittest.TestCase):
    def test_a_recipe_is_a_name_or_an_object(self):
        self.assertEqual(Recipe.parse("quotes\n"), Recipe("quotes"))
        self.assertEqual(Recipe.parse('"quotes"'), Recipe("quotes"))
        whole = Recipe.parse('{"spider": "quotes", "args": {"tag": "a"}, "settings": {"DEPTH_LIMIT": 3}}')
        self.assertEqual(whole, Recipe("quotes", {"tag": "a"}, {"DEPTH_LIMIT": 3}))
        self.assertEqual(Recipe.parse(whole.to_json()), whole)

    def test_what_is_none_says_what_to_change(self):
        for text, expected in (
            ("[1]", "the recipe is the name of a spider"),
            ('{"spider": "a"', "no JSON"),
            ('{"args": {}}', "`spider` is missing"),
            ('{"spider": "a", "arguments": {}}', "a recipe has no `arguments`"),
            ('{"spider": "a", "args": {"page": 7}}', 'write "7"'),
            ('{"spider": "a", "settings": []}', "`settings` is an object"),
        ):
            with self.assertRaisesRegex(InvalidRecipe, expected):
                Recipe.parse(text)
