"""Practice callers, played by random words, which find dead ends, or by a language model, judged by another.

Others use `rehearsals`.
"""
