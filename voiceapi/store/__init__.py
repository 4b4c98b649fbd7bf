"""The database: tables, queries and migrations. Only this package imports peewee."""
