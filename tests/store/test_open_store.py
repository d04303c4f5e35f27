"""Which homes are opened, and how the others are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from promptchain_dagster.errors import InvalidInput, StoreError
from promptchain_dagster.store import open_store

NOT_ATOMIC = [
    *("ftp://u:hunter2@h/x", "http://hunter2/x", "HTTPS://hunter2", "memory:///", "sftp:/x"),
    *("gcs://b/hunter2", "s3a://b", "hdfs://n/hunter2", "dbfs:/hunter2", "abfs://c@a/x"),
]
BROKEN = [
    *(
        "s3://AKIA:hunter2@bucket/x",
        "s3://AKIA:hunt/er2@bucket",
        "gs://hunter2@b",
        "S3://hunter2@b",
    ),
    *("s3://AKIA:hunter2", "az://c/p?sig=hunter2", "s3://b/p#hunter2", "s3:/k:hunter2@b"),
    *("file://hunter2/x", "s3://", "s3:///x", "s3:/b/x", "s3://b//x", "s3://b/../x", "s3://b/./y"),
    *(
        "s3://[hunter2/x",
        "s3://]",
        "gs://[::1]/x",
        "file:x",
        "file:////x",
        "file://",
        "file:///a%00b",
    ),
]


def test_a_home_is_a_path_a_file_url_or_starts_at_the_user_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to say it leads to the same folder, and a later chdir changes nothing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    open_store(str(tmp_path / "my home")).write("a", b"1")
    for home in [
        "~/my home",
        "my home",
        f"file://{tmp_path}/my%20home",
        f"file:{tmp_path}/my home",
    ]:
        store = open_store(home)
        assert store.read("a") == b"1", home
        assert store.url_of("a") == str(tmp_path / "my home" / "a")
    assert os.listdir(tmp_path / "my home") == ["a"]


@pytest.mark.parametrize("home", NOT_ATOMIC)
def test_a_store_without_atomic_writes_is_refused_by_its_scheme(home: str) -> None:
    """The error says what is allowed, and shows nothing that may be a password."""
    with pytest.raises(InvalidInput, match="without atomic writes is refused: ") as caught:
        open_store(home)
    assert f"{home.split(':')[0].lower()}://…" in str(caught.value)
    assert "allowed: a folder, s3://, gs://, az://" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("home", BROKEN)
def test_a_url_with_credentials_or_without_a_bucket_is_refused_unseen(home: str) -> None:
    """A secret in a URL is never shown, also when the URL is broken."""
    with pytest.raises(InvalidInput, match="home ") as caught:
        open_store(home)
    assert "hunt" not in repr(caught.value) and "er2" not in repr(caught.value)


@pytest.mark.parametrize("home", ["", "a\x00b", "a\nb", "\x7f"])
def test_a_home_that_is_no_name_is_refused(home: str) -> None:
    """Empty names and control characters are found before the disk is touched."""
    with pytest.raises(InvalidInput, match="empty or holds a control character"):
        open_store(home)


def test_a_home_that_can_not_be_made_or_written_is_refused_by_name(tmp_path: Path) -> None:
    """A file, a place under a file, a place in /proc, a link to nowhere, too long a name."""
    (tmp_path / "file").write_text("kept")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "x")
    homes = [tmp_path / "file", tmp_path / "file" / "below" / "it", tmp_path / "dangling"]
    homes += [tmp_path / ("x" * 300), Path("/proc/promptchain"), tmp_path / "\ud800"]
    for home in homes:
        with pytest.raises(InvalidInput, match="can't be used") as caught:
            open_store(str(home))
        assert repr(str(home)) in str(caught.value)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """Without the client library, an object store's error says what to install."""
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from promptchain_dagster.store import open_store\n"
        "from promptchain_dagster.errors import InvalidInput\n"
        "try: open_store('s3://bucket')\n"
        "except InvalidInput as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'promptchain-dagster[cloud]'" in done.stdout


def test_importing_the_store_does_not_import_the_cloud_client() -> None:
    """A folder's user doesn't pay for what only object stores need."""
    code = "import sys, promptchain_dagster.store; print('obstore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_bucket_that_is_missing_is_refused_without_the_credentials(s3_environment: str) -> None:
    """The store's own code is named; the key and the secret are not."""
    with pytest.raises(InvalidInput, match=r"s3://no-such-bucket/p.*NoSuchBucket") as caught:
        open_store("s3://no-such-bucket/p")
    assert "PLANTED" not in repr(caught.value).upper()
    assert caught.value.__cause__ is None


def test_a_bucket_that_goes_away_is_a_store_error(bucket: str, s3_environment: str) -> None:
    """A failing write says which object and why, and shows no credential."""
    import urllib.request

    store = open_store(f"s3://{bucket}")
    delete = urllib.request.Request(f"{s3_environment}/{bucket}", method="DELETE")
    urllib.request.urlopen(delete).close()
    with pytest.raises(StoreError, match=rf"s3://{bucket}/a/b' can't be written") as caught:
        store.write("a/b", b"1")
    assert "PLANTED" not in repr(caught.value).upper()
    assert caught.value.__cause__ is None


def test_a_home_that_is_only_read_is_not_written_to(tmp_path: Path) -> None:
    """So a trace can be looked at where nothing may be written, and no folder is made for it."""
    home = tmp_path / "home"
    assert open_store(str(home), read_only=True).read("traces/a.json") is None
    assert not home.exists()
