"""What an ended run owes: reviews by a language model, and webhooks.

Other rooms use `on_run_completed`, `process_next` and `deliver_next`.
"""
