"""The dialer: a pure plan of whom to call when, and the thread that carries it out."""
