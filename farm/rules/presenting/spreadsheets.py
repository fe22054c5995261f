"""What goes into a CSV that people open in a spreadsheet. Pure."""

# a spreadsheet takes a text that begins so for a formula (OWASP, "CSV Injection")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def safe(value: object) -> object:
    """The value of a cell as it is written: a text that looks like a formula gets a quote before it; None is empty."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
