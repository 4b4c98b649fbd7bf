"""The records: one SQLite file, its models, queries and migrations. Only this room imports peewee."""
