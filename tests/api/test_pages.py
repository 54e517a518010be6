from __future__ import annotations

import re

import pytest


def test_the_documentation_is_one_page_that_loads_nothing_from_elsewhere(served):
    page = served.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for path in ("/docs", "/docs/docs.css", "/docs/docs.js"):
        assert not re.search(r"(src|href|url|import|@import)\W{1,3}(https?:)?//", served.get(path).text)


def test_everything_the_page_names_is_served(served):
    page = served.get("/docs").text
    named = re.findall(r'(?:src|href)="(/[^"]*)"', page)
    assert set(named) == {"/docs/docs.css", "/docs/docs.js", "/openapi.json"}
    assert {served.get(path).status_code for path in named} == {200}


def test_behind_a_proxy_the_links_carry_its_path(serve):
    page = serve(proxy_root_path="/infinity").get("/docs").text
    assert 'src="/infinity/docs/docs.js"' in page
    assert 'data-root="/infinity"' in page


def test_the_script_finds_every_element_it_asks_for(served):
    page, script = served.get("/docs").text, served.get("/docs/docs.js").text
    ids = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'byId\("([^"]+)"\)', script)) <= ids


@pytest.mark.parametrize("name", ["nothing.js", "docs.html", "../app.py", "%2e%2e/app.py", "__init__.py"])
def test_no_other_file_is_in_reach(served, name):
    assert served.get(f"/docs/{name}").status_code == 404
