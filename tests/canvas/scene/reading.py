"""What the browser makes of a scene, in plain Python."""

from appca.canvas.image_placement import spread_order


def supports(scene):
    """Components of each row, read off the buffer."""
    slots = scene.buffers["components"]
    filler = {"u1": 255, "u2": 65535}[slots.dtype.str[1:]]
    return [tuple(int(k) for k in row if k != filler) for row in slots]


def panels_of_row(kind, support):
    """Panels that a row stands in."""
    if kind == "map":
        return [(0, 1)]  # the only panel
    if kind != "triangle" or len(support) < 2:
        return [support]
    return [(a, b) for b in support for a in support if a < b]


def rows_by_panel(scene, name):
    """All rows of each panel in the order in which they are drawn."""
    layout, order = scene.meta["layouts"][name], scene.buffers[f"order.{name}"]
    found = {}
    for panel in layout["panels"]:
        key = (0, 1) if layout["kind"] == "map" else tuple(panel["components"])
        found[key] = order[panel["start"] : panel["start"] + panel["listed"]].tolist()
    if layout["kind"] in ("triangle", "map"):
        priority = spread_order(scene.meta["rows"])
        used, listed = supports(scene), {key: set(rows) for key, rows in found.items()}
        for row in priority[: layout.get("drawn", {}).get("rows")].tolist():
            for key in panels_of_row(layout["kind"], used[row]):
                if key in found and row not in listed[key]:
                    found[key].append(row)
    return found
