"""The pool of every step that calls the model: how many of them work beside each other."""

import dagster as dg

POOL = "llm"


def runs_at_once(instance: dg.DagsterInstance) -> int | None:
    """The limit of the pool, over all machines of the instance; None where it has none.

    It is what was set in the UI or with `dagster instance concurrency set llm N`, or else
    `concurrency: pools: default_limit` in `dagster.yaml`.
    """
    log = instance.event_log_storage
    if not log.supports_global_concurrency_limits:
        return None
    limits = {pool.name: pool.limit for pool in log.get_pool_limits()}
    return limits.get(POOL, log.get_pool_config().default_pool_limit)
