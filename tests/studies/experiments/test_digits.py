"""The experiments with handwritten digits: on planted data, and on the files of MNIST."""

import numpy as np
import pytest

from appca.studies import digits as digits_module
from appca.studies import vae_digits
from appca.studies.fitting import PanelFit


def silent(_stage: str, _share: float) -> None:
    pass


@pytest.fixture
def planted() -> tuple[vae_digits.Digits, PanelFit]:
    """Forty thick strokes in one subspace, forty thin and leaning ones in the other."""
    images = np.zeros((80, 20, 20), np.uint8)
    for row in range(80):
        for y in range(4, 16):
            lean = 0 if row < 40 else round((10 - y) * 0.6)
            x = 9 + lean + row % 2
            images[row, y, x : x + (5 if row < 40 else 2)] = 255
    codes = np.arange(80) // 2 % 2
    active = np.zeros((80, 3), bool)
    active[:40, :2] = active[40:, 1:] = True
    scores = np.random.default_rng(0).normal(size=(80, 3)) * active
    return vae_digits.Digits(images, ["0", "1"], codes, scores), PanelFit(scores, active, np.eye(3))


def test_ink_and_slant_are_found_in_the_subspaces_they_were_put_in(planted):
    rows = {(row["measure"], row["subspace"]): row for row in vae_digits.effects(*planted)}
    thick, thin = rows["ink, pixels", "{1,2}"], rows["ink, pixels", "{2,3}"]
    assert (thick["mean"], thin["mean"], thick["rows"]) == (60, 24, 40)
    assert thick["effect"] == -thin["effect"] > 5
    assert thick["above_median"] == 1
    leaning = rows["slant, degrees", "{2,3}"]
    assert leaning["mean"] == pytest.approx(np.degrees(np.arctan(0.6)), abs=2)
    assert leaning["effect_within_classes"] > 5


def test_shares_of_the_classes_add_up(planted):
    digits, fitted = planted
    rows = vae_digits.class_shares(digits._replace(codes=(np.arange(80) < 40) * 1), fitted)
    assert [(row["digit"], row["all"]) for row in rows] == [("0", 0.5), ("1", 0.5)]
    assert [row["{1,2}"] for row in rows] == [0, 1]
    assert [row["{2,3}"] for row in rows] == [1, 0]


def test_both_experiments_share_one_autoencoder_and_draw_what_they_found(planted, monkeypatch):
    digits, fitted = planted
    trained = []
    monkeypatch.setattr(vae_digits, "_LAST", {})
    monkeypatch.setattr(digits_module, "fit", lambda *_given: fitted)
    monkeypatch.setattr(vae_digits, "fit", lambda *_given: fitted)

    def train(X, dimensions, epochs, seed, _report):
        assert (X.max(), dimensions, epochs, seed) == (1, 10, 30, 0)
        trained.append(1)

    class Opened:
        n_rows, X, labels = 80, digits.images.reshape(80, -1), {"digit": digits.codes}

        def images(self, rows):
            return digits.images[rows]

    monkeypatch.setattr(vae_digits, "train", train)
    monkeypatch.setattr(vae_digits, "encode", lambda _networks, _X: digits.Y)
    monkeypatch.setattr(vae_digits, "load", lambda *_given, **_options: Opened())
    monkeypatch.setattr(digits_module, "images_of", lambda _name, rows: digits.images[rows])
    options = vae_digits.STUDY.options("quick")
    first = vae_digits.STUDY.run(options, silent)
    second = digits_module.STROKES.run(options, silent)
    assert len(trained) == 1
    assert len(vae_digits.STUDY.figures(first)["digits"].layout.annotations) == 3
    drawn = digits_module.STROKES.figures(second)
    assert len(drawn["members"].layout.images) == 2
    assert len(drawn["spread"].data) == 6
    assert [claim.holds for claim in second.claims] == ["yes", "yes"]


def test_digits_that_share_are_told_from_chance(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(5), 60)
    active = np.zeros((300, 20), bool)
    for row, code in enumerate(codes):
        kin = 3 if code == 0 else code  # 1 and 7 use the same factors
        active[row, [4 * kin, 4 * kin + 1]] = True
        active[row, rng.choice(20, 3, replace=False)] = True
    outcome = digits_module.counted(active, codes, digits_module.ODD)
    rows = {(row["digit"], row["other"]): row for row in outcome.tables["sharing"]}
    assert rows["1", "7"]["deviation"] > 10
    assert rows["5", "9"]["deviation"] < 3
    assert [claim.holds for claim in outcome.claims[1:]] == ["yes", "no"]
    assert "number 1 of 10 pairs" in outcome.claims[1].measured
    shares = [row["share"] for row in outcome.tables["popularity"]]
    assert shares == sorted(shares, reverse=True)
    assert set(digits_module.SHARING.figures(outcome)) == {"grid", "popularity"}


@pytest.mark.real_data
@pytest.mark.slow
def test_the_odd_digits_share_most_with_their_own_kind():
    study = digits_module.SHARING
    small = {"per_class": 60, "n_components": 30, "n_active": 10, "dimensions": 40}
    outcome = study.run(study.options("quick", **small), silent)
    rows = {(row["digit"], row["other"]): row for row in outcome.tables["sharing"]}
    assert rows["1", "1"]["deviation"] > 3
    assert len(outcome.tables["popularity"]) == 30


@pytest.mark.real_data
@pytest.mark.slow
def test_digits_are_less_crowded_in_the_subspaces():
    study = vae_digits.STUDY
    outcome = study.run(study.options("quick", epochs=20), silent)
    panel = np.mean([row["panel_accuracy"] for row in outcome.tables["panels"]])
    assert panel > np.mean([row["pca_all_rows"] for row in outcome.tables["panels"]])
