"""Links between users and people of an identity provider."""

from django.db import models
from django.utils import timezone


class LinkedAccount(models.Model):
    """The link of a user to a person of an identity provider. `provider`: a key of the issuer; `uid`: the subject.

    Table and columns are django-allauth's, which the release before used: its processes read and write the same rows
    while a farm is upgraded. The last three columns are not used any more.
    """

    id = models.AutoField(primary_key=True)
    user = models.ForeignKey("accounts.User", models.CASCADE, related_name="linked_accounts")
    provider = models.CharField(max_length=200)
    uid = models.CharField(max_length=191)
    last_login = models.DateTimeField(default=timezone.now)
    date_joined = models.DateTimeField(default=timezone.now)
    extra_data = models.JSONField(default=dict)

    class Meta:
        db_table = "socialaccount_socialaccount"
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["provider", "uid"], name="one_user_per_person_of_a_provider")]

    def __str__(self) -> str:
        return self.uid
