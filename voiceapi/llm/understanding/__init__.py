"""What a caller's words mean, found without a language model: the edge they lead to, and the values they hold."""
