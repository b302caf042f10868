"""The one delivery of this server, with its home's secret and Streamlit's sessions and settings."""

import secrets
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import streamlit as st

from appca.canvas.parcels import Parcels, publish
from appca.canvas.scene.texts import texts_of
from appca.data.dataset import Dataset
from appca.runs.home import home, secret
from appca.ui.canvas.routes import PREFIX, Delivery, RowQuestions
from appca.ui.canvas.scenes import PageScene
from appca.ui.server import inside
from appca.ui.server.routes import base


@cache
def delivery() -> Delivery:
    """Return what this server serves to the canvas."""
    try:
        key = secret(home())
    except OSError:  # the pages say so; names are then good for as long as the server runs
        key = secrets.token_bytes(32)
    return Delivery(Parcels(key), inside.is_connected, _hosts)


def address(scene: PageScene, dataset: Dataset, canvas: str = "canvas") -> dict[str, Any]:
    """Offer a scene of a data set to the present session; return what its page needs to fetch it.

    What rows are asked for under the scene's key must not change. `canvas` is the key of the one
    that shows it.
    """
    here, session = delivery(), inside.session()
    answers: dict[str, Callable[[np.ndarray], Any]]
    answers = {"texts": partial(texts_of, dataset.ids, scene.scene.lines)}
    answers |= {} if scene.scores is None else {"scores": scene.scores}
    questions = RowQuestions(dataset.n_rows, answers)
    return publish(scene.scene, dataset.digest, here.parcels) | {
        "at": f"{base()}{PREFIX}/",
        "questions": here.ask(f"{dataset.digest} {scene.key}", questions, (session, canvas)),
        "key": here.key_of(session),
    }


def _hosts() -> set[str]:
    """Names of this server beside those of the machine itself, as far as it was told."""
    addresses = [st.get_option("server.address"), st.get_option("browser.serverAddress")]
    named = [*addresses, *(st.get_option("server.allowedHosts") or ())]
    return {str(name).strip().lower().rstrip(".") for name in named if name}
