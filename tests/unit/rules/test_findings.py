"""What may be found in a model is explained to people: why it matters, and what to do."""

from farm.rules.quality.findings import EXPLANATIONS


def test_every_explanation_says_why_and_what_to_do_in_whole_sentences() -> None:
    for explanation in EXPLANATIONS.values():
        assert explanation.why.endswith(".")
        assert explanation.fix.endswith(".")
        assert explanation.title[0].isupper()
