"""The knowledge base: documents that agents look things up in, their text and its passages."""
