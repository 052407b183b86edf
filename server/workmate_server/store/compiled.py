"""Write many rows through a statement that is compiled once for each kind of database.

For every row of an insert SQLAlchemy would work out anew what the parameters are and how each is
converted. The rows written here hold text, integers and bytes, which every driver takes as they are,
so that the values go to it in the order that the compiled statement asks for.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection

Rows = Sequence[dict[str, Any]]

_Values = Callable[[dict[str, Any]], Any]

_COMPILED: dict[tuple[Any, ...], tuple[str, _Values]] = {}


def write_rows(connection: Connection, statement: Any, rows: Rows) -> None:
    """Execute an insert once for each row; all rows have the same names. No rows are nothing to do.

    The statement must be one that its module built once, because what is compiled of it is kept.
    """
    if rows:
        text, values = _compiled(connection, statement, tuple(rows[0]))
        connection.exec_driver_sql(text, [values(row) for row in rows])


def _compiled(
    connection: Connection, statement: Any, names: tuple[str, ...]
) -> tuple[str, _Values]:
    dialect = connection.dialect
    key = (statement, names, dialect.name, dialect.paramstyle)
    if key not in _COMPILED:
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        places = compiled.positiontup
        _COMPILED[key] = (str(compiled), dict if places is None else itemgetter(*places))
    return _COMPILED[key]
