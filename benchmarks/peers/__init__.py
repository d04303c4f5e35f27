"""What would be picked instead, run in an environment of its own (`requirements.txt`).

Each does the same work with the same prompts; the chunks are cut beforehand, which ours are not.
"""
