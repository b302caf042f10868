from concurrent.futures import ThreadPoolExecutor

import pytest

from appca.runs.home import secret


def test_all_get_the_same_secret_and_nobody_else_may_read_it(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: secret(tmp_path / "home"), range(16)))
    assert len(found) == 1
    assert len(found.pop()) == 32
    assert (tmp_path / "home" / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spoil", ["empty", "others may read"])
def test_a_secret_that_is_none_any_more_is_replaced(tmp_path, spoil):
    first = secret(tmp_path)
    file = tmp_path / "secret"
    if spoil == "empty":
        file.write_bytes(b"")
    else:
        file.chmod(0o644)
    second = secret(tmp_path)
    assert second != first
    assert second == secret(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_written_to_is_an_os_error(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(OSError, match="home"):
        secret(tmp_path / "home")
    assert (tmp_path / "home").read_text() == "a file"
