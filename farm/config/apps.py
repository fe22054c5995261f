from django.apps import AppConfig


class WiringConfig(AppConfig):
    """Makes the Celery app known to every process that sets Django up, so that services can send by name."""

    name = "farm.config"
    label = "wiring"

    def ready(self) -> None:
        import farm.config.allowances
        import farm.config.celery
        import farm.config.checks  # noqa: F401
        from farm.registry.confinement import apply_operator_choice

        apply_operator_choice()
