"""The knowledge base: documents, their text, and the passages that they are found by."""
