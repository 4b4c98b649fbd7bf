"""The rules that a definition has to keep, each broken one a finding that names its place."""
