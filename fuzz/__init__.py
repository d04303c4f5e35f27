"""Coverage-guided fuzzing of everything that reads bytes from outside: `make fuzz`.

`targets.TARGETS` says what is fuzzed and what must hold; the tests run the same targets on the
inputs in `corpus/`, which need no fuzzer.
"""
