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
    assert found["sparse", "x"].x == (1.0, 2.0)
    assert found["sparse", "x2"].error_x.array == (0.0,)
    assert found["sparse", "x"].marker.color != found["dense", "x"].marker.color
    assert figure.layout.yaxis.ticktext == ("FA", "aFA")
    assert figure.layout.yaxis.range == (1.5, -0.5)  # the first on top
    assert found["dense", "x"].y[0] > found["sparse", "x"].y[1] > 0.5 > found["sparse", "x"].y[0]
    assert figure.layout.xaxis.type == "log"
    assert dots(table, "mse", "error").layout.xaxis.type is None


def test_an_empty_table_makes_an_empty_figure():
    assert dots([], "mse", "error").data == ()
