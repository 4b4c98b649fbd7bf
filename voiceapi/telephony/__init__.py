"""Telephone carriers: what each needs, the numbers they dial, and one module for each dialect."""
