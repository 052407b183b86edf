"""The one place with SQL: tables, statements, the database engines and the schema's history."""
