"""What is fuzzed: a module a target, each with `check(data)`, which raises when a promise is broken, and its SEEDS."""
