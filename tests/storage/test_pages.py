import numpy as np

from appca.storage.packed import give_back


def test_pages_are_read_again_and_what_was_written_to_a_copy_stays(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(40_000.0).reshape(400, 100))
    for mode in ("r", "c"):
        X = np.load(tmp_path / "X.npy", mmap_mode=mode)
        if mode == "c":
            X[7, 3] = -1
        give_back(np.asarray(X)[5:300])
        give_back(X[::2])
        assert X[7, 3] == (-1 if mode == "c" else 703)
        assert X[-1, -1] == 39_999
    give_back(np.zeros(3))
