"""Who somebody is with an identity provider, in a database where django-allauth kept it."""

from importlib import import_module

from django.apps import apps
from django.db import connection

from farm.accounts.models import LinkedAccount, User

TABLE = LinkedAccount._meta.db_table
# as django-allauth 65.21.1 made it on SQLite; its columns are the same on PostgreSQL
BEFORE = f"""
    CREATE TABLE {TABLE} (
        id integer NOT NULL PRIMARY KEY AUTOINCREMENT, provider varchar(200) NOT NULL, uid varchar(191) NOT NULL,
        last_login datetime NOT NULL, date_joined datetime NOT NULL,
        extra_data text NOT NULL CHECK ((JSON_VALID(extra_data) OR extra_data IS NULL)),
        user_id bigint NOT NULL REFERENCES accounts_user (id) DEFERRABLE INITIALLY DEFERRED
    )
"""
ROW = f"""
    INSERT INTO {TABLE} (provider, uid, last_login, date_joined, extra_data, user_id)
    VALUES ('openid-1', 'u-1', '2026-11-24', '2026-11-24', '{{}}', %s)
"""


def migrate() -> None:
    """What the migration does to the tables."""
    step = import_module("farm.accounts.migrations.0002_linked_accounts")
    with connection.schema_editor() as editor:
        step.make_table(apps, editor)


def test_a_person_of_the_release_before_stays_who_they_are(transactional_db: None) -> None:
    user = User.objects.create(username="ada")
    with connection.schema_editor() as editor:
        editor.delete_model(LinkedAccount)
    with connection.cursor() as cursor:
        cursor.execute(BEFORE)
        cursor.execute(ROW, [user.pk])
    try:
        migrate()
        assert LinkedAccount.objects.get(provider="openid-1", uid="u-1").user == user
        # and a process of the release before reads what this one writes
        made = LinkedAccount.objects.create(provider="openid-1", uid="u-2", user=user)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT extra_data FROM {TABLE} WHERE id = %s", [made.pk])
            assert cursor.fetchone() == ("{}",)
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(LinkedAccount)
        migrate()
    assert not LinkedAccount.objects.exists()
