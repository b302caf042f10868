"""The data sets of the page Data that are one click away: their choices, and files for them."""

from appca.data.errors import InputError
from appca.ui import sources
from tests.ui.conftest import sentences


def test_each_dropped_file_is_answered_for(start, monkeypatch):
    def receive(name: str, _file: object) -> str | None:
        if name.startswith("damaged"):
            msg = f"“{name}” is damaged."
            raise InputError(msg)
        return None if name == "other.gz" else "mnist"

    monkeypatch.setattr(sources, "receive", receive)
    app = start("data/data")
    names = ("damaged-1.gz", "labels.gz", "damaged-2.gz", "other.gz")
    files = [(name, b"x", "application/gzip") for name in names]
    (uploader,) = [one for one in app.get("file_uploader") if "MNIST" in one.label]
    uploader.set_value(files)
    app.run()
    assert [problem.message for problem in app.exception] == []
    assert sentences(app) == [
        "“damaged-1.gz” is damaged.",
        "“damaged-2.gz” is damaged.",
        "“other.gz” is no file of MNIST or COIL-20 by its name.",
    ]
    assert [box.value.startswith("“labels") for box in app.success] == [True]
    app.run()
    assert [*app.error, *app.success] == [], "said once"
