"""What decides and speaks: models of language."""
