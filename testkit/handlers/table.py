"""The script's table in PostgreSQL."""

import contextlib
import os
import urllib.parse

import psycopg2

# The script inserts and does nothing else, and it may have to do a batch once more: the table keeps the row that it has.
CREATE = """
CREATE TABLE artist (mbid text PRIMARY KEY, query text, data text);
CREATE FUNCTION keep_the_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM artist WHERE mbid = NEW.mbid) THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_the_first BEFORE INSERT ON artist FOR EACH ROW EXECUTE FUNCTION keep_the_first();
"""


class Table:
    """A table `artist` in a schema of its own, which is dropped at the end."""

    def __init__(self, schema):
        self.schema = schema
        options = urllib.parse.quote(f"-c search_path={schema}")
        self.connection = f"{os.environ['POSTGRES_URL']}?options={options}"

    def rows(self):
        """The `mbid` and `data` of each."""
        return self.do("SELECT mbid, data FROM artist")

    def do(self, statement):
        with contextlib.closing(psycopg2.connect(self.connection)) as connection, connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def __enter__(self):
        self.do(f"CREATE SCHEMA {self.schema}; {CREATE}")
        return self

    def __exit__(self, *_):
        self.do(f"DROP SCHEMA {self.schema} CASCADE")
