"""Run revisions inside the transaction that the caller has opened."""

from alembic import context

from workmate_server.store.tables import ServerTable

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=ServerTable.metadata,
    transactional_ddl=True,
)
context.run_migrations()
