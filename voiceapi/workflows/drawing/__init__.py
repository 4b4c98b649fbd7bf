"""A workflow definition as a picture.

Others may use `svg.draw` and `overlay`.
"""
