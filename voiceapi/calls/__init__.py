"""Phone calls: placing and answering them, their turns and status callbacks, and the sweeper.

Other rooms use `triggers`, `outbound`, `inbound`, `webhooks`, `requested_end`, `sweeper`, `idempotency` and `doctor`.
"""
