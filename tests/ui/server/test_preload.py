"""Code that is named to the browser with a page."""

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from appca.ui.server import preload, token
from tests.ui.server.asked import asked


def test_each_widget_of_the_first_page_is_found_with_what_it_imports():
    names = preload.needed()
    for widget in preload.WIDGETS:
        assert any(name.startswith(f"{widget}.") for name in names)
    texts = [(preload.SCRIPTS / name).read_text(encoding="utf-8") for name in names]
    assert {one for text in texts for one in preload._IMPORTED.findall(text)} <= set(names)


def test_pages_carry_the_links_and_nothing_else_does():
    app = Starlette(
        routes=[
            Route("/", lambda _: HTMLResponse("<p>")),
            Route("/data", lambda _: PlainTextResponse("1")),
        ],
        middleware=token.middleware(),
    )
    links = asked(app, "/").headers["link"].split(", ")
    every = [f"</static/js/{name}>; rel=modulepreload" for name in preload.needed()]
    assert links == every[: len(links)]
    assert len(links) >= len(preload.WIDGETS)
    assert len(", ".join(links)) <= 3000
    assert "link" not in asked(app, "/data").headers
