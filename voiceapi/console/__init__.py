"""The console: a web page over the public API, served as static files.

Others may use `pages.register`.
"""
