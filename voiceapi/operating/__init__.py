"""The operator's side of the service: metrics, readiness, retention, backups, copies to another database."""
