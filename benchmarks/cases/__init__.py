"""What is measured, each module run in a process of its own by `child.run_case`."""
