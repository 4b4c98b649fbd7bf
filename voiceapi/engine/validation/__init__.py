"""The rules that a workflow definition has to keep; each broken rule gives a finding that names its place."""
