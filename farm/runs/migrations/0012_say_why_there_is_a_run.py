from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0011_keep_what_a_run_leads_with"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "asked for"),
                    ("watch", "Watch"),
                    ("confirmation", "Confirmation"),
                    ("bisection", "Bisection"),
                    ("work-around", "Work Around"),
                ],
                # code of before, which goes on while this is applied, names no reason
                db_default="",
                default="",
                max_length=12,
            ),
        ),
    ]
