"""Inside `chain_job` and `chain_assets`: a chain's steps as ops and assets, and what they keep."""
