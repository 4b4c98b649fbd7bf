"""The console's page and files: what is served where, with which headers, and what the files may hold."""

from __future__ import annotations

import gzip
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from html.parser import HTMLParser
from pathlib import Path
from typing import cast
from urllib.parse import urljoin, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

import voiceapi.console
from voiceapi import VoiceAPI, create_app
from voiceapi.store import database

KEY = "test-key-0123456789"
FILES = Path(voiceapi.console.__file__).parent / "static"
SCRIPTS = sorted(FILES.rglob("*.js"))
LONGEST = 400
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "media-src": "'self' blob:",
    "connect-src": "'self'",
    "form-action": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str]) -> Iterator[FlaskClient]:
    path = database_at(tmp_path_factory.mktemp("standalone") / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": KEY})
    yield app.test_client()
    app.extensions["voiceapi"].close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str]) -> Iterator[FlaskClient]:
    """A client of an app that holds voiceapi under /voice, behind a login that lets everybody in as ada."""
    app = Flask("host")
    app.config.update(VOICEAPI_DATABASE=database_at(tmp_path_factory.mktemp("host") / "voice.db"), VOICEAPI_API_KEY=KEY)
    app.register_error_handler(404, lambda error: ("<h1>Lost in the workshop</h1>", 404))
    app.add_url_rule("/", "home", lambda: "The workshop")
    VoiceAPI(authenticate=lambda: "ada").init_app(app, url_prefix="/voice")
    yield app.test_client()
    app.extensions["voiceapi"].close()


class Links(HTMLParser):
    """What a page links to, and its inline code."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.inline: list[str] = []
        self.meta: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        if tag == "meta" and "name" in given:
            self.meta[given["name"]] = given["content"]
        address = given.get("src") or given.get("href") or "#"
        if not address.startswith("#"):
            self.links.append(address)


def read_page(client: FlaskClient, path: str) -> Links:
    found = Links()
    found.feed(client.get(path).text)
    return found


# -- the page


@pytest.mark.parametrize("path", ["/", "/console"])
def test_the_page_is_served_without_a_key(standalone: FlaskClient, path: str) -> None:
    answer = standalone.get(path)
    assert (answer.status_code, answer.mimetype, answer.text[:15]) == (200, "text/html", "<!doctype html>")
    head = standalone.head(path)
    assert (head.status_code, head.data, head.content_length) == (200, b"", len(answer.data))


@pytest.mark.parametrize("path", ["/", "/console"])
def test_what_the_page_links_to_is_there(standalone: FlaskClient, path: str) -> None:
    links = read_page(standalone, path).links
    assert len(links) == 3
    assert [standalone.get(urljoin(path, link)).status_code for link in links] == [200] * 3


def test_the_page_under_a_prefix_links_below_it(host: FlaskClient) -> None:
    links = [urljoin("/voice/console", link) for link in read_page(host, "/voice/console").links]
    assert [host.get(link).status_code for link in links] == [200] * 3
    assert host.get("/").text == "The workshop"
    assert host.get("/console").status_code == 404


def test_with_a_slash_it_leads_to_the_page(standalone: FlaskClient, host: FlaskClient) -> None:
    for client, prefix in ((standalone, ""), (host, "/voice")):
        answer = client.get(f"{prefix}/console/")
        # Relative, because a proxy may have taken a part of the path away.
        assert (answer.status_code, answer.headers["Location"]) == (308, "../console")
        assert urljoin(f"{prefix}/console/", answer.headers["Location"]) == f"{prefix}/console"


def test_the_page_knows_whether_a_login_may_let_it_in(standalone: FlaskClient, host: FlaskClient) -> None:
    assert read_page(standalone, "/").meta["voiceapi-login"] == "key"
    assert read_page(host, "/voice/console").meta["voiceapi-login"] == "host"


def test_a_page_behind_a_login_reads_and_writes_without_a_key(host: FlaskClient) -> None:
    path, body = "/voice/api/v1/credentials/", {"name": "Shop", "credential_type": "none", "credential_data": {}}
    same = {"Sec-Fetch-Site": "same-origin"}
    assert host.post(path, json=body, headers=same).status_code == 200
    assert [each["name"] for each in host.get(path, headers=same).json or []] == ["Shop"]
    assert host.post(path, json=body, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_the_page_asks_the_database_nothing(standalone: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this request opened a session of the database")

    monkeypatch.setattr(database.Store, "session", refuse)
    assert [standalone.get(path).status_code for path in ("/", "/console", "/console/main.js")] == [200] * 3


def test_it_can_be_switched_off(tmp_path: Path, database_at: Callable[..., str]) -> None:
    settings = {
        "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
        "VOICEAPI_API_KEY": KEY,
        "VOICEAPI_CONSOLE": "off",
    }
    app = create_app(settings)
    client = app.test_client()
    for path in ("/", "/console", "/console/", "/console/main.js"):
        answer = client.get(path)
        assert (answer.status_code, answer.json) == (404, {"detail": "Not Found"})
    assert client.get("/api/v1/health").status_code == 200
    app.extensions["voiceapi"].close()


# -- headers, tags and compression


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("/console", 200), ("/console/", 308), ("/console/main.js", 200), ("/console/console.css", 200)),
        *(("/console/icon.svg", 200), ("/console/missing.js", 404), ("/console/missing", 404)),
    ],
)
def test_every_answer_keeps_foreign_code_out(
    standalone: FlaskClient, host: FlaskClient, path: str, status: int
) -> None:
    for client, place in ((standalone, path), (host, f"/voice{path}")):
        answer = client.get(place)
        policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
        assert (answer.status_code, policy) == (status, POLICY)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Cache-Control"] == "no-cache"
        assert "Set-Cookie" not in answer.headers
        if status == 404:  # not the host's page
            assert answer.json == {"detail": "Not Found"}


def test_the_root_has_the_headers_too(standalone: FlaskClient) -> None:
    root, page = standalone.get("/"), standalone.get("/console")
    assert (root.data, root.headers["Content-Security-Policy"]) == (page.data, page.headers["Content-Security-Policy"])


@pytest.mark.parametrize(
    ("name", "mimetype"), [("main.js", "text/javascript"), ("console.css", "text/css"), ("icon.svg", "image/svg+xml")]
)
def test_a_file_is_what_it_is_called(standalone: FlaskClient, name: str, mimetype: str) -> None:
    answer = standalone.get(f"/console/{name}")
    assert (answer.mimetype, answer.data) == (mimetype, (FILES / name).read_bytes())


@pytest.mark.parametrize("path", ["/", "/console/main.js"])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_what_the_browser_has_is_not_sent_again(standalone: FlaskClient, path: str, encoding: str) -> None:
    first = standalone.get(path, headers={"Accept-Encoding": encoding})
    given = {"Accept-Encoding": encoding, "If-None-Match": first.headers["ETag"]}
    again = standalone.get(path, headers=given)
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert "Content-Security-Policy" in again.headers
    assert standalone.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


def test_large_files_are_compressed(standalone: FlaskClient) -> None:
    answer = standalone.get("/console/console.css", headers={"Accept-Encoding": "gzip"})
    assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(answer.data) == (FILES / "console.css").read_bytes()


# -- what isn't served


@pytest.mark.parametrize(
    "name",
    [
        *("../pages.py", "%2e%2e/pages.py", "..%2fpages.py", "pages/../../pages.py", "%2e%2e%5cpages.py"),
        *("%2fetc%2fpasswd", "/etc/passwd", "..%2f..%2f__init__.py", "../__init__.js", "main.js%00.svg", "%00.js"),
        *("index.html", "pages", "pages/", "main.js/", f"{'a' * 300}.js", f"{'a/' * 3000}b.js", "main.JS", "~.js"),
    ],
)
def test_nothing_else_is_served(standalone: FlaskClient, name: str) -> None:
    answer = standalone.get(f"/console/{name}", follow_redirects=True)
    assert (answer.status_code, answer.json) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("path", ["/", "/console", "/console/main.js"])
def test_it_is_only_read(standalone: FlaskClient, path: str) -> None:
    answer = standalone.post(path)
    assert (answer.status_code, answer.json) == (405, {"detail": "Method Not Allowed"})


# -- what the files may hold


def without_comments(script: str) -> str:
    return re.sub(r"(?m)^\s*(//|\*|/\*).*$|\s// .*$", "", script)


def test_the_page_has_no_inline_code(standalone: FlaskClient) -> None:
    assert read_page(standalone, "/").inline == []


NOT_ALLOWED = [
    ("markup from text", r"innerHTML|outerHTML|insertAdjacentHTML|document\.write"),
    ("code from text", r"\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:"),
    ("inline style", r"\.style\b|style:|setAttribute\(\s*[\"']style|cssText"),
    ("inline handler", r"setAttribute\(\s*[\"']on"),
    ("another host", r"(?:fetch|import|src|href|action)\W[^\n]*https?://"),
    # But for two switches: whether drafts save themselves, and whether keys of one character work.
    ("kept beyond the tab", r"localStorage(?!\.\w+Item\(SWITCH\b)|indexedDB|document\.cookie"),
]


def against_the_rules(text: str) -> Iterator[str]:
    """Which rules a script breaks."""
    if len(text.splitlines()) > LONGEST:
        yield "a module of this length holds two concepts"
    if not text.startswith("// "):
        yield "the first line says what the module does"
    script = without_comments(text)
    yield from (f"{name}: {found[0]}" for name, rule in NOT_ALLOWED if (found := re.search(rule, script)))


def test_a_script_keeps_the_rules() -> None:
    texts = {str(path.relative_to(FILES)): path.read_text(encoding="utf-8") for path in SCRIPTS}
    assert [(path, broken) for path, text in texts.items() for broken in against_the_rules(text)] == []


@pytest.mark.parametrize(
    ("script", "broken"),
    [
        ("// Says.\n" * 401, "a module of this length holds two concepts"),
        ("let x;\n", "the first line says what the module does"),
        ("// Says.\nnode.innerHTML = text;\n", "markup from text: innerHTML"),
        ('// Says.\nsetTimeout("go()", 1);\n', 'code from text: setTimeout("'),
        ("// Says.\nnode.style.color = x;\n", "inline style: .style"),
        ('// Says.\nnode.setAttribute("onclick", x);\n', 'inline handler: setAttribute("on'),
        ('// Says.\nfetch("https://other.example/");\n', 'another host: fetch("https://'),
        ("// Says.\nlocalStorage.x = 1;\n", "kept beyond the tab: localStorage"),
        ("// Says.\nlocalStorage.setItem(name, 1);\n", "kept beyond the tab: localStorage"),
    ],
)
def test_a_script_that_breaks_a_rule_is_found(script: str, broken: str) -> None:
    assert list(against_the_rules(script)) == [broken]


EXPORT = re.compile(r"export (?:async )?(?:function\*?|const|let|class) (\w+)|export \{([^}]*)\}")
IMPORT = re.compile(
    r"(?:import|export) (?:\{([^}]*)\}|\* as \w+) from \"([^\"]+)\"|import\(\"([^\"]+)\"\)|import \"([^\"]+)\""
)
# What a script may import, besides its own folder's: by folder, from the bottom up. main.js has no folder.
SUBJECTS = [f"pages/{name}" for name in ("agents", "calls", "campaigns", "cases", "setup")]
ROOMS: dict[str, set[str]] = {
    "parts": set(),
    "app": {"parts"},
    "builder": {"app", "parts"},
    **{subject: {"builder", "app", "parts"} for subject in SUBJECTS},
    "pages": {*SUBJECTS, "builder", "app", "parts"},
    ".": {"app", "parts"},
}


def names_in(braces: str) -> list[str]:
    return [name.strip().split(" as ")[0] for name in braces.split(",") if name.strip()]


@cache
def exports(path: Path) -> set[str]:
    found: set[str] = set()
    for single, several in EXPORT.findall(path.read_text(encoding="utf-8")):
        found |= {single} if single else {name.split(" as ")[-1].strip() for name in several.split(",") if name.strip()}
    return found


def missing_imports(path: Path) -> Iterator[str]:
    """What a script imports and isn't there."""
    for braces, *places in IMPORT.findall(path.read_text(encoding="utf-8")):
        place = next(filter(None, places))
        target = (path.parent / place).resolve()
        if not re.fullmatch(r"\.\.?/.*\.js", place):
            yield f"{path.name}: {place} is no file of the console"
        elif target not in SCRIPTS:
            yield f"{path.name}: there is no {place}"
        elif missing := set(names_in(braces)) - exports(target):
            yield f"{path.name}: {place} doesn't export {sorted(missing)}"


def test_what_a_script_imports_is_there() -> None:
    assert [missing for path in SCRIPTS for missing in missing_imports(path)] == []


def test_an_import_of_what_is_missing_is_found() -> None:
    """The scripts are those of the console; only the importing one is made up."""
    imports = {'from "./parts/dom.js"': ["h", "nothing"], 'from "./none.js"': ["h"], 'from "lodash"': ["h"]}

    class Script:
        name, parent = "new.js", FILES

        def read_text(self, encoding: str) -> str:
            return "\n".join(f"import {{ {', '.join(names)} }} {place};" for place, names in imports.items())

    assert list(missing_imports(cast("Path", Script()))) == [
        "new.js: ./parts/dom.js doesn't export ['nothing']",
        "new.js: there is no ./none.js",
        "new.js: lodash is no file of the console",
    ]


def imported(path: Path) -> list[Path]:
    """The scripts that a script imports when it is loaded. Pages are loaded later, by main.js."""
    places = (each for _, *found in IMPORT.findall(path.read_text(encoding="utf-8")) for each in found if each)
    return [(path.parent / place).resolve() for place in places]


def room(path: Path) -> str:
    return path.parent.relative_to(FILES).as_posix()


def test_a_script_imports_only_what_its_room_may() -> None:
    wrong = [
        f"{path.relative_to(FILES)} may not import {each.relative_to(FILES)}"
        for path in SCRIPTS
        for each in imported(path)
        if room(each) not in ROOMS[room(path)] | {room(path)}
    ]
    assert wrong == []


def test_no_script_imports_itself_through_others() -> None:
    assert list(TopologicalSorter(ROOMS).static_order())
    graph = {path: imported(path) for path in SCRIPTS}
    assert len(list(TopologicalSorter(graph).static_order())) == len(SCRIPTS)


def routes() -> dict[str, str]:
    """The addresses of the pages, `:` for any part, and the names of their modules."""
    found = re.findall(r'\["(/[^"]*)", page\("([\w-]+)"\)', (FILES / "main.js").read_text(encoding="utf-8"))
    return dict(found)


def test_every_page_is_there_and_has_an_address() -> None:
    modules = {path.stem: path for path in (FILES / "pages").glob("*.js")}
    assert set(routes().values()) == set(modules)
    for path in modules.values():
        assert "export default async function" in path.read_text(encoding="utf-8"), path


def test_links_between_the_pages_lead_somewhere() -> None:
    """Those whose address is written out."""
    written = re.compile(r'\b(?:link\([^()]*?, |go\(|\["[^"]*", )"(/[^"?]*)"|href: "#(/[^"?]*)')
    known = set(routes())
    for path in SCRIPTS:
        for found in written.findall(path.read_text(encoding="utf-8")):
            assert "".join(found) in known, f"{path.name} links to {''.join(found)}"


def test_the_style_sheet_has_its_colors_in_one_place() -> None:
    sheet = re.sub(r"/\*.*?\*/", "", (FILES / "console.css").read_text(encoding="utf-8"), flags=re.DOTALL)
    rest = re.sub(r":root \{.*?\n\s*\}", "", sheet, flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\s,)])|rgba?\(|hsla?\(", rest) == []
    assert re.findall(r"url\(|@import", sheet) == []
    used, made = (set(re.findall(rule, sheet)) for rule in (r"var\((--[\w-]+)", r"(--[\w-]+):"))
    assert (used - made, made - used) == (set(), set())


def test_pictures_hold_no_scripts() -> None:
    for path in FILES.rglob("*.svg"):
        for element in ET.parse(path).iter():
            assert not element.tag.endswith(("script", "foreignObject", "style")), path
            assert not [name for name in element.attrib if name.startswith("on") or name.endswith("href")], path


def test_every_file_is_one_that_is_served(standalone: FlaskClient) -> None:
    for path in FILES.rglob("*"):
        name = str(path.relative_to(FILES))
        if path.is_file() and name != "index.html":
            assert standalone.get(f"/console/{name}").status_code == 200, name
            assert urlsplit(name).path == name
