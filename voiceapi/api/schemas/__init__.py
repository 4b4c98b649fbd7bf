"""The shapes of requests and answers, one module per resource."""
