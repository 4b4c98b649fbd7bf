"""Conversations as pure functions, without I/O or a clock.

Other packages use `step.step` with `state.State`, the `events` that it takes and the `actions` that it returns,
`graph.Graph` and the readers of definitions beside it, `template.render`, and `validation.check.check`.
"""
