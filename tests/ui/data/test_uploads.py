"""Own files on the Data page: what can be chosen for each kind, and what is said of them."""

import io

import numpy as np

from appca.ui.data import intake_report
from appca.ui.data.role_editor import found
from tests.data.readers.arrays.test_idx_format import idx
from tests.data.readers.images.test_images import encoded, noise
from tests.ui.conftest import go, healthy, html, sentences


def give(app, *files):
    app.get("file_uploader")[-1].set_value(
        [(name, data, "application/octet-stream") for name, data in files]
    )
    return app.run()


def box(app, label):
    return next(one for one in app.selectbox if one.label == label)


def field(app, label):
    return next(one for one in app.text_input if one.label == label)


def number(app, label):
    return next(one for one in app.number_input if one.label == label)


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_several_arrays_are_offered_and_rows_can_be_images(start):
    rng = np.random.default_rng(0)
    data = npz(a=rng.normal(size=(30, 6)), b=rng.normal(size=(20, 12)))
    app = give(start("data/open"), ("x.npz", data))
    assert "several arrays" in sentences(app)[0]
    box(app, "The array with the rows").select("b").run()
    assert "20 rows × 12" in html(healthy(app))
    number(app, "Rows are images of height").set_value(3).run()
    number(app, "and width").set_value(4).run()
    assert "3 × 4 pixels" in html(healthy(app))
    app.button(key="upload_use").click().run()
    assert "20 rows × 12" in html(healthy(app))


def test_digits_and_their_labels_come_as_two_files(start):
    images, labels = noise(0, 30, 4, 4), np.arange(30, dtype=np.uint8) % 3
    app = give(start("data/open"), ("x-images.idx", idx(images)), ("x-labels.idx", idx(labels)))
    assert "3 values: 0 (10), 1 (10), 2 (10)" in html(healthy(app))
    app.button(key="upload_use").click().run()
    assert "4 × 4 pixels" in html(healthy(app))


def test_a_pattern_for_the_names_of_images_shows_the_classes_it_finds(start):
    files = [(f"s{i % 2}_v{i}.png", encoded(noise(i, 4, 4))) for i in range(8)]
    app = give(start("data/open"), *files)
    field(app, "Pattern of the names").set_value("{side}_v{n}").run()
    assert "Label “side”" in html(healthy(app))
    assert "2 values: s0 (4), s1 (4)" in html(app)
    field(app, "Pattern of the names").set_value("{side}-{n}").run()
    assert "does not fit the file name" in sentences(app)[0]
    box(app, "The class is told by").select("none").run()
    assert "Label" not in html(healthy(app)).split("Files")[1].split("First fit")[0]


def test_how_a_table_is_written_can_be_said(start):
    app = give(start("data/open"), ("t.csv", "größe;b\n1;2\n3;5\n4;4\n".encode("cp1252")))
    assert "3 rows × 2" in html(healthy(app))
    field(app, "Encoding").set_value("utf-8").run()
    assert "name its encoding" in sentences(app)[0]
    field(app, "Encoding").set_value("cp1252").run()
    box(app, "First line").select(False).run()
    assert len(sentences(app)) == 1
    box(app, "First line").select(True).run()
    assert "3 rows × 2" in html(healthy(app))


def test_columns_of_numbers_and_words_are_offered_to_be_left_out(start):
    rows = "\n".join(f"{i % 4},{i * i % 7},{'odd' if i == 3 else i}" for i in range(9))
    app = give(start("data/open"), ("t.csv", f"a,b,c\n{rows}\n".encode()))
    assert "1 word among its numbers" in sentences(app)[0]
    app.multiselect[0].select("c").run()
    assert "9 rows × 3" in html(healthy(app))
    assert "Ignored" in html(app)
    app.run()
    assert "Ignored" in html(healthy(app))


def test_an_open_file_is_named_as_the_source_of_the_data(start):
    app = give(start("data/open"), ("mine <b>.csv", b"a,b\n1,2\n3,4\n5,4\n"))
    app.button(key="upload_use").click().run()
    assert "mine &lt;b&gt;.csv" in html(healthy(app))


def wide(columns):
    rng = np.random.default_rng(0)
    lines = [",".join(["kind", *(f"g{j}" for j in range(columns))])]
    lines += [
        ",".join(["ab"[i % 2], *map("{:.3f}".format, rng.normal(size=columns))]) for i in range(5)
    ]
    return "\n".join(lines).encode()


def test_many_columns_are_searched_and_given_a_role_at_once(start):
    app = give(start("data/open"), ("wide.csv", wide(700)))
    assert any("200 of 701 columns shown" in one.value for one in healthy(app).caption)
    set_all = next(one for one in app.button if one.label == "Set")
    assert set_all.disabled
    field(app, "Find columns by name").set_value("G69").run()
    box(app, "Use all 11 columns found as").select("ignored").run()
    next(one for one in app.button if one.label == "Set").click().run()
    assert "g69, g690, g691, g692, g693 and 6 more" in html(healthy(app))
    app.button(key="upload_use").click().run()
    assert "5 rows × 689" in html(healthy(app))


BAD = [
    [("a.csv", b"1,2\n3,4\n"), ("b.csv", b"1,2\n3,4\n")],
    [("a.doc", b"words")],
    [("a.mat", b"words")],
    [("a.parquet", b"words")],
    [("a.npz", b"words")],
    [("a.idx", b"words")],
    [("a.png", b"words"), ("b.png", b"words")],
]


def test_what_cannot_be_read_is_one_sentence_and_the_page_lives(start):
    app = start("data/open")
    for files in BAD:
        give(app, *files)
        assert not app.exception
        assert len(sentences(app)) == 1
        assert sentences(app)[0].endswith(".")
    healthy(give(app, ("t.csv", b"a,b\n1,2\n3,4\n5,4\n")))


def test_the_report_says_what_a_fit_would_take_at_the_present_k_and_l(start):
    app = start("data/open")
    go(app, "explore")
    app.number_input(key="k_typed").set_value(6).run()
    app = go(app, "data/open")
    give(app, ("t.csv", wide(20)))
    shown = html(healthy(app))
    assert "a fit needs about" in shown
    assert "under 1 s for K = 4, L = 2" in shown
    give(app, ("t.npy", npy(np.random.default_rng(1).normal(size=(50, 20)))))
    assert "under 1 s for K = 6, L = 2" in html(healthy(app))


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_names_are_found_whatever_their_case():
    assert found(["Gene_1", "gene_2", "other"], "GENE") == ["Gene_1", "gene_2"]


def test_memory_counts_bytes_as_the_numbers_they_become():
    assert intake_report.memory(10, 10, 1) == intake_report.memory(10, 10, 4)
    assert intake_report.memory(10, 10, 8) == 2 * intake_report.memory(10, 10, 4)
