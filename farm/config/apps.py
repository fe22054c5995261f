from django.apps import AppConfig


class WiringConfig(AppConfig):
    """Loads the Celery app, by which services send tasks, and the checks in every process that sets up Django."""

    name = "farm.config"
    label = "wiring"

    def ready(self) -> None:
        import farm.config.allowances
        import farm.config.celery
        import farm.config.checks  # noqa: F401
        from farm.registry.confinement import apply_operator_choice

        apply_operator_choice()
