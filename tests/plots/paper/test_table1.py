from appca.plots.paper.table1 import dots


def row(design: str, K: int, title: str, value: float | None, spread: float | None = 0.1) -> dict:
    return {"design": design, "K": K, "title": title, "mse": value, "mse_sd": spread}


def test_one_panel_a_size_one_colour_a_design_methods_from_top_to_bottom():
    table = [
        row("sparse", 20, "FA", 3.0, None),
        row("sparse", 10, "FA", 1.0),
        row("sparse", 10, "aFA", 2.0),
        row("dense", 10, "aFA", 4.0),
        row("dense", 10, "none", None),
    ]
    figure = dots(table, "mse", "error", log=True)
    assert [note.text for note in figure.layout.annotations] == ["K = 10", "K = 20"]
    found = {(trace.name, trace.xaxis): trace for trace in figure.data}
    assert set(found) == {("sparse", "x"), ("sparse", "x2"), ("dense", "x")}
    assert found["sparse", "x"].x.tolist() == [1.0, 2.0]
    assert found["sparse", "x2"].error_x.array.tolist() == [0.0]
    assert found["sparse", "x"].marker.color != found["dense", "x"].marker.color
    assert tuple(figure.layout.yaxis.categoryarray) == ("aFA", "FA")  # from below: the first on top
    assert found["sparse", "x"].y.tolist() == ["FA", "aFA"]
    assert figure.layout.scattermode == "group"  # designs beside one another
    assert figure.layout.xaxis.type == "log"
    assert dots(table, "mse", "error").layout.xaxis.type is None


def test_an_empty_table_makes_an_empty_figure():
    assert dots([], "mse", "error").data == ()
