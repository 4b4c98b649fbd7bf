"""What whoever runs the service needs: metrics.open_metrics, gauges.read."""
