"""`python -m promptchain_dagster.cli`."""

from promptchain_dagster.cli import main

main()
