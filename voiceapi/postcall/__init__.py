"""What follows an ended run: reviews by a language model, and webhooks.

Other rooms use `outbox.on_run_completed`, `processing.process_next` and `delivery.deliver_next`.
"""
