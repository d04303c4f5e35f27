"""Inside `summaries`, `summary_assets` and `automation`: many documents in one run."""
