"""The page New data: rows of a file and of another data set under the run on screen."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from appca.data.builtin import load
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.store import RunStore
from tests.ui.conftest import address, healthy, sentences

PAGE = "share/new_data"


def csv_of(frame: pd.DataFrame, name: str = "new.csv") -> tuple[str, bytes, str]:
    return (name, frame.to_csv(index=False).encode(), "text/csv")


def upload(app, file: tuple[str, bytes, str]):
    app.get("file_uploader")[-1].set_value([file])
    return app.run()


def words(app) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption]).replace("\\", "")


def wine_frame() -> pd.DataFrame:
    wine = load("wine")
    return pd.DataFrame(wine.X, columns=list(wine.feature_names)).assign(
        grower=next(iter(wine.labels.values()))
    )


@pytest.fixture
def wine_page(start):
    return start(PAGE, data=DatasetStore(home()).put(load("wine")))


def test_the_run_s_own_rows_shuffled_get_the_run_s_own_numbers(wine_page, monkeypatch):
    saved = []
    monkeypatch.setattr(
        "appca.ui.new_data_page.table_buttons",
        lambda made, shown, _stem, **_how: saved.append((made(), shown)),
    )
    frame = wine_frame().sample(frac=1, axis=1, random_state=1).assign(extra=1.5)
    app = healthy(upload(wine_page, csv_of(frame)))
    assert "178 new rows; columns found by their names, in another order; not used: “extra”" in (
        words(app)
    )
    table, shown = saved[-1]
    run = RunStore(home()).get(address(app)["run"])
    assert shown.run.id == run.id
    for k in range(4):
        np.testing.assert_allclose(
            table[f"component_{k + 1}"], run.arrays["scores"][:, k], rtol=0, atol=1e-10
        )
    np.testing.assert_allclose(
        table["log_likelihood"], run.arrays["log_likelihood_rows"], rtol=0, atol=1e-10
    )
    assert list(table["grower"]) == list(next(iter(load("wine").labels.values())))


def test_missing_columns_are_one_sentence_with_their_names(wine_page):
    frame = wine_frame().drop(columns=["hue", "ash"])
    app = upload(wine_page, csv_of(frame))
    assert sentences(app) == [
        "“new” lacks 2 columns that the run was fitted to, “ash”, “hue”; add them, or name them as "
        "there."
    ]
    assert not app.exception


def test_missing_cells_are_refused_until_somebody_says_what_to_do(wine_page):
    frame = wine_frame()
    frame.loc[3, "hue"] = np.nan
    frame["empty"] = np.nan  # a column the run does not know may be as it likes
    app = upload(wine_page, csv_of(frame))
    assert ["1 missing cell" in sentence for sentence in sentences(app)] == [True]
    (choice,) = [box for box in app.selectbox if box.label == "Missing cells"]
    app = healthy(choice.select("drop").run())
    assert "177 new rows" in words(app)
    (choice,) = [box for box in app.selectbox if box.label == "Missing cells"]
    app = healthy(choice.select("model").run())
    assert "178 new rows" in words(app)
    assert "Q of a row with missing cells is reckoned from the cells it has" in words(app)


def test_images_of_another_size_are_refused_or_brought_to_size(start):
    pack = io.BytesIO()
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(pack, "w") as archive:
        for i in range(4):
            picture = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (12, 12), dtype=np.uint8)).save(picture, "PNG")
            archive.writestr(f"noise/{i}.png", picture.getvalue())
    app = upload(start(PAGE), ("noise.zip", pack.getvalue(), "application/zip"))
    (sentence,) = sentences(app)
    assert "12 × 12 pixels, those of the run 8 × 8 pixels" in sentence
    app = healthy(app.toggle(key="new_data_resize").set_value(True).run())
    assert "4 of 4 new rows do not fit" in words(app)


def test_another_data_set_is_held_against_the_run_and_noise_stands_first(start):
    digits = load("digits")
    rng = np.random.default_rng(0)
    X = np.vstack([digits.X[:50], rng.uniform(0, 16, (5, 64))])
    mixed = Dataset("mixed", X, np.arange(55), image_shape=(8, 8))
    DatasetStore(home()).put(mixed)
    app = start(PAGE)
    app.segmented_control(key="new_data_source").set_value("stored").run()
    (choice,) = [box for box in app.selectbox if box.label == "Data set"]
    app = healthy(choice.select(mixed.digest).run())
    (table,) = app.dataframe
    first = table.value.iloc[:5]
    assert sorted(first["id"]) == ["50", "51", "52", "53", "54"]
    assert set(first["fits"]) == {"no"}
    assert all(uri.startswith("data:image/png") for uri in first["image"])
    assert all(uri.startswith("data:image/png") for uri in first["reconstruction"])
