from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "farm.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from farm.accounts.ticks import note_tick
        from farm.base.ticks import tick_ended

        tick_ended.connect(note_tick, dispatch_uid="farm.accounts")
