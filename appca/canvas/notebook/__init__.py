"""What a notebook shows of a fitted model: the canvas as a widget, and figures."""
