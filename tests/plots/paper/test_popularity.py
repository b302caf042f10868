from appca.plots.paper.popularity import COLOURS, TRUTH, popularity


def rows(design: str, method: str, *shares: float) -> list[dict]:
    return [
        {"design": design, "method": method, "title": method.upper(), "rank": i, "share": share}
        for i, share in enumerate(shares, start=1)
    ]


def test_the_truth_is_red_on_top_and_each_line_is_named_once():
    table = rows("sparse", "truth", 0.9, 0.1) + rows("sparse", "afa", 0.5, 0.5)
    table += rows("dense", "truth", 0.9, 0.8) + rows("dense", "isfa", 0.7)
    figure = popularity(table)
    assert [note.text for note in figure.layout.annotations] == ["Sparse data", "Dense data"]
    lines = [(line.name, line.line.color, line.showlegend, line.xaxis) for line in figure.data]
    assert lines == [
        ("AFA", COLOURS[0], True, "x"),
        ("ISFA", COLOURS[1], True, "x2"),
        ("TRUTH", TRUTH, True, "x"),
        ("TRUTH", TRUTH, False, "x2"),
    ]
    truth = figure.data[2]
    assert (truth.x.tolist(), truth.y.tolist()) == ([0.9, 0.1], [1, 2])
    assert figure.layout.yaxis.autorange == "reversed"  # the most popular factor on top
