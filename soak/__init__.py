"""Thousands of documents through a server that misbehaves, and what must hold then: `make soak`.

`server` answers in a process of its own, as `replies` says for a prompt and as badly as `faults`
says; `core` and `under_dagster` summarize, each in a process too; `promises` judges what is left.
"""
