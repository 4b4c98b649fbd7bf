"""Background threads, jobs that pause, and jobs whose result is waited for only a limited time."""
