"""The home in an object store: S3 and what speaks like it, Google Cloud Storage, Azure."""

from __future__ import annotations

import builtins
import os
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from promptchain_dagster.errors import InvalidInput, StoreError
from promptchain_dagster.store.keys import check_key, check_prefix, is_key, is_probe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from obstore import ObjectMeta
    from obstore.store import ObjectStore as Bucket

    Pages = Iterable[Sequence[ObjectMeta]]


class Connection:
    """A place in a bucket, and the library that is asked for it.

    `errors` are what the library raises; its texts may quote keys and signatures, so only what
    `cloud_reason` says of them is shown. Outages are waited out for as long as `patience`.
    """

    def __init__(self, url: str, what: str, patience: timedelta) -> None:
        try:
            import obstore
            from obstore.store import from_url  # pyright: ignore[reportUnknownVariableType]
        except ModuleNotFoundError:
            raise InvalidInput(
                f"{what} {url!r} needs the extra 'cloud': pip install 'promptchain-dagster[cloud]'"
            ) from None
        self.obstore = obstore
        self.errors = (obstore.exceptions.BaseError, OSError)
        try:
            self.bucket: Bucket = from_url(
                url,
                client_options={"allow_http": _endpoint_is_http()},
                retry_config={"max_retries": 8, "retry_timeout": patience},
            )
        except self.errors as error:
            raise InvalidInput(f"{what} {url!r} can't be opened: {cloud_reason(error)}") from None


class ObjectStore:
    """Objects in a bucket, under the prefix that its URL names; a put there is atomic."""

    def __init__(self, url: str) -> None:
        # A write keeps what was paid for, so an outage of a few seconds is waited out.
        connection = Connection(url, "home", timedelta(seconds=60))
        self._url, self._bucket = url, connection.bucket
        self._obstore, self._errors = connection.obstore, connection.errors

    def url_of(self, key: str) -> str:
        return f"{self._url}/{check_key(key)}"

    def read(self, key: str) -> bytes | None:
        try:
            return bytes(self._obstore.get(self._bucket, check_key(key)).bytes())
        except FileNotFoundError:
            return None
        except self._errors as error:
            raise self._failed("read", key, error) from None

    def write(self, key: str, data: bytes) -> None:
        try:
            self._obstore.put(self._bucket, check_key(key), data)
        except self._errors as error:
            raise self._failed("written", key, error) from None

    def list(self, prefix: str) -> list[str]:
        return [key for key, _ in self.list_aged(prefix)]

    def list_aged(self, prefix: str) -> builtins.list[tuple[str, datetime]]:
        top = check_prefix(prefix)
        try:
            pages = cast("Pages", self._obstore.list(self._bucket, prefix))  # pyright: ignore[reportUnknownMemberType]
            found = [(o["path"], o["last_modified"]) for page in pages for o in page]
            return sorted(one for one in found if is_key(one[0]))
        except self._errors as error:
            raise self._failed("listed", top, error) from None

    def delete(self, key: str) -> None:
        try:
            self._obstore.delete(self._bucket, check_key(key))
        except FileNotFoundError:
            return
        except self._errors as error:
            raise self._failed("deleted", key, error) from None

    def sweep(self, before: datetime, *, dry_run: bool = False) -> int:
        try:
            listed = self._obstore.list_with_delimiter(self._bucket)  # pyright: ignore[reportUnknownMemberType]
            top = listed["objects"]
        except self._errors as error:
            raise StoreError(f"{self._url!r} can't be swept: {cloud_reason(error)}") from None
        old = [o["path"] for o in top if is_probe(o["path"]) and o["last_modified"] < before]
        for key in () if dry_run else old:
            self.delete(key)
        return len(old)

    def _failed(self, verb: str, key: str, error: Exception) -> StoreError:
        return StoreError(f"{self.url_of(key)!r} can't be {verb}: {cloud_reason(error)}")


def _endpoint_is_http() -> bool:
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return any(os.environ.get(name, "").lower().startswith("http://") for name in names)


def cloud_reason(error: Exception) -> str:
    """What is safe to show of an error whose text may quote keys and signatures."""
    text = str(error)
    if "169.254.169.254" in text:  # asked only when the environment holds no credentials
        return "no credentials were found in the environment"
    code = re.search(r"<Code>(\w+)</Code>", text)
    status = re.search(r"status code: (\d{3})", text)
    if status or code:
        said = [code[1] if code else "", f"HTTP {status[1]}" if status else ""]
        return "the store answered " + " ".join(filter(None, said))
    if "error sending request" in text:
        return "the store could not be reached"
    if "Account must be specified" in text:
        return "AZURE_STORAGE_ACCOUNT_NAME is not set"
    return f"{type(error).__name__} from the store's client"
