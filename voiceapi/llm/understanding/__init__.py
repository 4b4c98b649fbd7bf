"""Understanding of a caller's words without a language model: the edge they lead to, and the values they hold."""
