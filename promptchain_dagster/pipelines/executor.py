"""How the steps of a run are executed: in the run's own process unless asked otherwise."""

import dagster as dg

in_process_by_default = dg.multi_or_in_process_executor.configured(
    lambda config: config,
    name="in_process_by_default",
    config_schema=dg.Field(
        dg.Selector({"in_process": dg.Permissive(), "multiprocess": dg.Permissive()}),
        default_value={"in_process": {}},
    ),
)
"""Starting a process costs seconds a step, so one is not started unless a run asks for it:

    execution: {config: {multiprocess: {max_concurrent: 2}}}
"""
