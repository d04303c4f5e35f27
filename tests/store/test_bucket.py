"""Reading a bucket that others fill: odd keys, keys that are no path, many objects, outages."""

from __future__ import annotations

import subprocess
import sys
import urllib.request

import pytest

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.store import bucket as module
from promptchain_dagster.store.bucket import ObjectReader
from promptchain_dagster.store.places import place_of
from tests.support.s3 import Objects

ODD_KEYS = [
    *("my-report v2.txt", "报告.txt", "a/x.txt", "b/x.txt", "a_x.txt", "a...b.txt", "x..txt"),
    *("новости/выпуск.md", "x|y;z.txt", "%2e%2e.txt", "a%20b.txt", "a+b&c=d.txt", "#1?.txt"),
    *("'quoted' \"name\".md", "UPPER.TXT", "e\u0301.txt", "\u00e9.txt", "\U0001f600.txt"),
    *(" .txt", "~.txt", "C:\\x.txt", "[a]*.txt", "a/b/c/d/e.md", "x" * 200 + ".txt"),
]
NO_PATHS = ["sub//b.txt", "sub/../b.txt", "sub/./b.txt", "sub/b\x01.txt", "sub//"]


def reader(objects: Objects, prefix: str = "docs") -> ObjectReader:
    return ObjectReader(objects.url(prefix), "documents")


def paths(objects: Objects, prefix: str = "docs") -> list[str]:
    return [one.path for one in reader(objects, prefix).list((".txt", ".md")).found]


def test_odd_keys_are_listed_sorted_and_read_back(objects: Objects) -> None:
    """Whatever an object is called, its path leads back to it."""
    for key in ODD_KEYS:
        objects.put(f"docs/{key}", f"this is {key}")
    assert paths(objects) == sorted(ODD_KEYS)
    for key in ODD_KEYS:
        assert reader(objects).read(key, 999, key).decode() == f"this is {key}"


def test_only_what_lies_under_the_prefix_is_listed(objects: Objects) -> None:
    """Neither what merely begins like it, nor what is hidden or of another kind."""
    objects.put("docs/a.txt")
    for key in ("a.txt", "docs2/a.txt", "docs.txt", "docs/a.rtf", "docs/txt", "docs/a.txt.bak"):
        objects.put(key)
    for key in ("docs/.a.txt", "docs/.git/a.txt", "docs/b/.cache/c/a.md"):
        objects.put(key)
    assert paths(objects) == ["a.txt"]
    assert paths(objects, "nothing/here") == []


def test_a_folder_as_consoles_make_it_hides_no_object(objects: Objects) -> None:
    """A key that ends in a slash is no document, and does not stand twice beside one."""
    objects.put("docs/", b"")
    objects.put("docs/sub/", b"")
    objects.put("docs/a.txt", "one two three")
    objects.put("docs/a.txt/", b"")
    (found,) = reader(objects).list((".txt",)).found
    assert (found.path, found.size) == ("a.txt", 13)


@pytest.mark.parametrize("key", NO_PATHS)
def test_a_key_that_is_no_path_costs_its_own_folder_alone(objects: Objects, key: str) -> None:
    """The folder is told of, like one on disk that can't be listed; all others are listed."""
    for good in ("a.txt", "zz/deep/er/z.txt", "subs/b.txt", ".hidden/b.txt", key):
        objects.put(f"docs/{good}")
    listed = reader(objects).list((".txt",))
    assert [one.path for one in listed.found] == ["a.txt", "subs/b.txt", "zz/deep/er/z.txt"]
    assert listed.unlisted == ["sub/"]


@pytest.mark.parametrize("key", ["/lead.txt", "../up.txt", "bell\x07.txt"])
def test_a_key_that_is_no_path_right_under_the_url_is_named(objects: Objects, key: str) -> None:
    """What can't be listed is an error, never taken for what is gone."""
    objects.put("docs/a.txt")
    objects.put(f"docs/{key}")
    with pytest.raises(InvalidInput, match=r"documents 's3://.*/docs' can't be listed") as caught:
        paths(objects)
    assert repr(f"docs/{key}") in str(caught.value)


@pytest.mark.parametrize(
    "path", ["", "/a.txt", "a//b.txt", "../docs/a.txt", "./a.txt", "a.txt/", "\0.txt", "\udcff.txt"]
)
def test_a_path_that_no_object_can_have_is_refused(objects: Objects, path: str) -> None:
    """It is not mended into the name of another object."""
    for key in ("docs/a.txt", "docs/a/b.txt", "docs//a.txt"):
        objects.put(key)
    with pytest.raises(InvalidInput, match="can't be read: "):
        reader(objects).read(path, 99, "it")


def test_a_size_over_the_limit_is_refused_and_one_at_it_is_not(objects: Objects) -> None:
    """The limit is named."""
    objects.put("docs/a.txt", "12345")
    assert reader(objects).read("a.txt", 5, "it") == b"12345"
    with pytest.raises(InvalidInput, match="it has over 4 bytes"):
        reader(objects).read("a.txt", 4, "it")
    objects.put("docs/empty.txt", b"")
    assert reader(objects).read("empty.txt", 0, "it") == b""


def test_an_object_that_is_gone_is_told_from_one_that_could_not_be_read(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the cause, as for files."""
    with pytest.raises(InvalidInput, match="it can't be read: there is no such object") as caught:
        reader(objects).read("gone.txt", 9, "it")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    monkeypatch.setattr(module, "_PATIENCE", module.timedelta(seconds=1))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(InvalidInput, match="it can't be read: the store could not") as caught:
        reader(objects).read("a.txt", 9, "it")
    assert type(caught.value.__cause__) is OSError
    assert "PLANTED" not in repr(caught.value.__cause__).upper()
    with pytest.raises(InvalidInput, match=r"documents 's3://.*' can't be listed: the store could"):
        paths(objects)


def test_a_bucket_that_is_missing_is_named_without_the_credentials(
    objects: Objects, s3_environment: str
) -> None:
    """It is not taken for an empty one."""
    url = f"{s3_environment}/{objects.bucket}"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()
    with pytest.raises(InvalidInput, match=r"can't be listed: .*NoSuchBucket") as caught:
        paths(objects)
    assert objects.url("docs") in str(caught.value)
    assert "PLANTED" not in repr(caught.value).upper()


def test_more_objects_than_a_look_has_time_for_are_refused(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any kind: a listing goes through them all."""
    monkeypatch.setattr(module, "MAX_OBJECTS", 3)
    for key in ("a.txt", "b.pdf", "c/d.txt"):
        objects.put(f"docs/{key}")
    assert paths(objects) == ["a.txt", "c/d.txt"]
    objects.put("docs/c/e.pdf")
    with pytest.raises(InvalidInput, match="over 3 objects are there"):
        paths(objects)
    objects.put("docs/c//f.txt")
    objects.put("docs/f.txt")
    with pytest.raises(InvalidInput, match="over 3 objects are there"):
        paths(objects)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("s3://bucket", "s3://bucket"),
        ("S3://bucket/a b/报告/", "s3://bucket/a b/报告"),
        ("gs://bucket/a%20b", "gs://bucket/a%20b"),
        ("az://container/x", "az://container/x"),
    ],
)
def test_a_url_names_a_place_in_a_bucket(url: str, where: str) -> None:
    """Without a slash at its end."""
    place = place_of(url, "documents")
    assert (place.where, place.in_bucket) == (where, True)


@pytest.mark.parametrize(
    "url",
    [
        *("s3://AKIA:hunter2@bucket/x", "az://c/p?sig=hunter2", "s3://b/p#hunter2", "s3:///x"),
        *("s3://b/../hunter2", "s3://b/%2e%2E/hunter2", "s3://b/.%2e", "s3://b//hunter2"),
        *("ftp://u:hunter2@h/x", "https://hunter2/x", "hdfs://n/hunter2", "s3a://hunter2"),
    ],
)
def test_a_url_that_is_no_such_place_is_refused_unseen(url: str) -> None:
    """A secret in a URL is never shown, and no URL leads out of its prefix."""
    with pytest.raises(InvalidInput, match=r"documents:? .*://…") as caught:
        place_of(url, "documents")
    assert "hunter2" not in repr(caught.value)


def test_a_missing_extra_is_named() -> None:
    """Without the client library, the error says what needs it and what to install."""
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from promptchain_dagster.library.bucket import documents_at\n"
        "from promptchain_dagster.errors import InvalidInput\n"
        "bucket = documents_at('s3://bucket/docs')\n"
        "for call in (bucket.list, lambda: bucket.load('a.txt')):\n"
        "    try: call()\n"
        "    except InvalidInput as error: print(error, isinstance(error.__cause__, OSError))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].endswith("True")  # so no document is set aside for it
    said = "documents 's3://bucket/docs' needs the extra 'cloud': pip install"
    assert done.stdout.count(said) == 2
