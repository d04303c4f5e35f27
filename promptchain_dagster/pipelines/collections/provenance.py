"""The versions that Dagster adds to an output on its own, for a materialization that is logged.

Without them the UI can't tell what is out of date.
"""

import dagster as dg


def provenance(
    instance: dg.DagsterInstance,
    partition: str,
    *,
    code_version: str,
    data_version: str,
    made_from: tuple[dg.AssetKey, str],
    others: tuple[dg.AssetKey, ...] = (),
) -> dict[str, str]:
    """The tags of a materialization of `partition`.

    `made_from` is an external asset and the data version that was read of that partition. Dagster
    goes by the observations of it: it is out of date once one with another data version follows.
    `others` are further external assets that it depends on, and that are never observed.
    """
    tags = {
        "dagster/data_version": data_version,
        "dagster/data_version_is_user_provided": "true",
        "dagster/code_version": code_version,
    }
    for key in others:
        tags |= _input(key, "INITIAL", None)
    key, read = made_from
    record = instance.get_latest_data_version_record(key, True, partition)
    if record is None:
        return tags | _input(key, "INITIAL", None)
    seen = (record.event_log_entry.tags or {}).get("dagster/data_version")
    # What was observed while this was being made, and is not what was read, counts as news.
    return tags | _input(key, read, record.storage_id - (seen != read))


def _input(key: dg.AssetKey, data_version: str, storage_id: int | None) -> dict[str, str]:
    name = key.to_user_string()
    return {
        f"dagster/input_data_version/{name}": data_version,
        f"dagster/input_event_pointer/{name}": str(storage_id) if storage_id else "NULL",
    }
