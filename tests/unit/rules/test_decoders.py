"""A decoder with past: what its names and shapes say, and what is missing where they do not."""

from dataclasses import dataclass

import pytest

from farm.rules.generation import decoders
from farm.rules.generation.decoders import NotADecoder


@dataclass(frozen=True)
class Port:
    name: str
    dtype: str
    shape: tuple[int | str, ...] | None


IDS = Port("input_ids", "int64", ("batch", "sequence"))
MASK = Port("attention_mask", "int64", ("batch", "total"))
LOGITS = Port("logits", "float32", ("batch", "sequence", 1000))


def cache(name: str, length: int | str = "past", heads: int | str = 2, dtype: str = "float32") -> Port:
    return Port(name, dtype, ("batch", heads, length, 64))


def of_layers(stem: str, layers: int = 2, **other: int | str) -> list[Port]:
    parts = [f"{stem}.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    return [cache(name, **other) for name in parts]


PASTS, PRESENTS = of_layers("past_key_values"), of_layers("present", length="total")


def test_a_usual_export_is_read_and_said_in_one_describe() -> None:
    extra = Port("position_ids", "int64", ("batch", "sequence"))
    found = decoders.find_decoder([IDS, MASK, extra, *PASTS], [LOGITS, *reversed(PRESENTS)])
    assert found.describe() == "a decoder with past: 2 layers, 2 heads of 64, vocabulary 1,000"
    assert (found.tokens, found.mask, found.positions, found.scores) == (
        "input_ids", "attention_mask", "position_ids", "logits",
    )  # fmt: skip
    assert found.caches[:2] == (
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.0.value", "present.0.value"),
    )


def test_lengths_of_group_query_attention_are_told_apart() -> None:
    lengths = [Port("seqlens_k", "int32", ("batch",)), Port("total_sequence_length", "int32", ())]
    found = decoders.find_decoder([IDS, *lengths, *PASTS], [LOGITS, *PRESENTS])
    assert (found.last_places, found.total, found.mask) == ("seqlens_k", "total_sequence_length", "")


def test_keys_and_values_may_be_named_before_the_layer_or_be_one_tensor() -> None:
    named = decoders.find_decoder(
        [IDS, cache("past_key_0"), cache("past_value_0")], [LOGITS, cache("present_key_0"), cache("present_value_0")]
    )
    both = (2, "batch", 4, "past", 32)
    one = decoders.find_decoder(
        [IDS, Port("past_0", "float16", both)],
        [Port("scores", "float16", ("batch", "sequence", "vocabulary")), Port("present_0", "float16", both)],
    )
    assert named.caches == (("past_key_0", "present_key_0"), ("past_value_0", "present_value_0"))
    assert one.describe() == "a decoder with past: 1 layer, 4 heads of 32"
    assert (one.scores, one.vocabulary) == ("scores", None)


def test_a_model_without_past_is_no_decoder_and_nothing_is_said() -> None:
    assert decoders.find_decoder([IDS, MASK], [LOGITS]) is None


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        (
            [IDS, *PASTS], [LOGITS, *PRESENTS[:-1]],
            "past_key_values.1.value has no present output of its layer and part: export the model with both.",
        ),
        (
            [IDS, *PASTS[1:]], [LOGITS, *PRESENTS],
            "present.0.key has no past input of its layer and part: export the model with both.",
        ),
        (
            [IDS, cache("past")], [LOGITS, cache("present")],
            "The names of the past inputs say no layer: call them past_key_values.0.key and so on.",
        ),
        (
            [IDS, Port("encoder_hidden_states", "float32", ("batch", "n", 8)), *PASTS], [LOGITS, *PRESENTS],
            "The input encoder_hidden_states is of an encoder-decoder, whose generation is not measured yet.",
        ),
        (
            [IDS, cache("past_key_values.0.encoder.key")], [LOGITS],
            "The input past_key_values.0.encoder.key is of an encoder-decoder, whose generation is not measured yet.",
        ),
        (
            [IDS, *PASTS[:3], cache("past_key_values.1.value", heads=4)], [LOGITS, *PRESENTS],
            "The caches past_key_values.0.key and past_key_values.1.value differ in type, heads or their size.",
        ),
        (
            [IDS, *PASTS], [LOGITS, *of_layers("present", length="total", dtype="float16")],
            "past_key_values.0.key and present.0.key differ in type or rank: a present is the next past.",
        ),
        (
            [IDS, Port("past_0", "float32", ("batch", 2, "past", 64))], [LOGITS, cache("present_0")],
            "past_0 has the shape ['batch', 2, 'past', 64], not [2, batch, heads, length, size].",
        ),
        (
            [IDS, Port("past_key_0", "float32", None)], [LOGITS, cache("present_key_0")],
            "past_key_0 has the shape [], not [batch, heads, length, size].",
        ),
        (
            [IDS, *of_layers("past_key_values", heads="heads")], [LOGITS, *PRESENTS],
            "The shape of past_key_values.0.key does not say how many heads of which size it holds.",
        ),
        (
            [IDS, *of_layers("past_key_values", length=4096)], [LOGITS, *PRESENTS],
            "past_key_values.0.key has a fixed length of 4,096: only caches that grow are measured yet.",
        ),
        (
            [IDS, *of_layers("past_key_values", dtype="uint8")], [LOGITS, *of_layers("present", dtype="uint8")],
            "past_key_values.0.key holds uint8: only caches of floating-point numbers are measured yet.",
        ),
        (
            [IDS, Port("use_cache_branch", "bool", (1,)), *PASTS], [LOGITS, *PRESENTS],
            "The input use_cache_branch is neither token ids, mask, positions, lengths nor past: nobody can say what "
            "it holds at each token.",
        ),
        (
            [IDS, Port("attention_mask", "int64", ("batch", 1, "sequence", "total")), *PASTS], [LOGITS, *PRESENTS],
            "The input attention_mask is neither token ids, mask, positions, lengths nor past: nobody can say what "
            "it holds at each token.",
        ),
        (
            [MASK, *PASTS], [LOGITS, *PRESENTS],
            "No input takes token ids: call it input_ids, with the shape [batch, sequence].",
        ),
        (
            [IDS, *PASTS], PRESENTS,
            "No single output scores the tokens: call it logits, of the shape [batch, sequence, vocabulary].",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_in_one_sentence(inputs: list[Port], outputs: list[Port], said: str) -> None:
    with pytest.raises(NotADecoder) as refused:
        decoders.find_decoder(inputs, outputs)
    assert str(refused.value) == said


def test_words_say_what_it_is_or_why_not_or_nothing() -> None:
    assert decoders.describe_generation([IDS, *PASTS], [LOGITS, *PRESENTS]).startswith("a decoder with past: 2 layers")
    assert decoders.describe_generation([IDS], [LOGITS]) == ""
    said = "not as a decoder with past: The names of the past inputs say no layer: call them past_key_values.0.key"
    assert decoders.describe_generation([IDS, cache("past")], [LOGITS]) == f"{said} and so on."


def test_why_a_model_cannot_generate_is_one_sentence_and_empty_where_it_can() -> None:
    assert decoders.generation_problem([IDS, *PASTS], [LOGITS, *PRESENTS]) == ""
    assert decoders.generation_problem([IDS], [LOGITS]).startswith("The model has no past among its inputs")
    assert decoders.generation_problem([IDS, *PASTS], PRESENTS).startswith("No single output scores the tokens")
    open_end = Port("logits", "float32", ("batch", "sequence", "vocabulary"))
    assert decoders.generation_problem([IDS, *PASTS], [open_end, *PRESENTS]) == (
        "The shape of logits does not say how many tokens it scores: export it with that number."
    )


LENGTHS = [Port("seqlens_k", "int32", ("batch",)), Port("total_sequence_length", "int32", ())]


def test_one_token_stands_behind_a_longer_past_so_that_the_whole_stays() -> None:
    sizes = {"sequence": 64, "past": 64, "total": 128}
    assert decoders.single_token_sizes([IDS, *LENGTHS, *PASTS], sizes) == {"sequence": 1, "past": 127}
    assert decoders.single_token_sizes([IDS, MASK, *PASTS], sizes) == {"sequence": 1, "past": 127}


def test_group_query_attention_is_known_by_its_operator() -> None:
    assert decoders.has_group_query_attention({"MatMul": 3, "com.microsoft.GroupQueryAttention": 2})
    assert not decoders.has_group_query_attention({"MatMul": 3, "com.microsoft.MultiHeadAttention": 2})


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        ([IDS, *LENGTHS], {"sequence": 64}),
        ([*LENGTHS, *PASTS], {"past": 64}),
        ([Port("input_ids", "int64", ("batch", 1)), *LENGTHS, *PASTS], {"past": 64}),
        ([IDS, *LENGTHS, *of_layers("past_key_values", length=512)], {"sequence": 64}),
        ([IDS, *LENGTHS, *of_layers("past_key_values", length="sequence")], {"sequence": 64}),
        ([IDS, *LENGTHS, Port("past_key_values.0.key", "float32", None)], {"sequence": 64}),
        ([IDS, *LENGTHS, *PASTS], {}),
    ],
)
def test_any_other_model_keeps_its_sizes(inputs: list[Port], sizes: dict[str, int]) -> None:
    assert decoders.single_token_sizes(inputs, sizes) == {}


def test_inputs_that_say_places_and_those_that_mask_them_are_told_by_their_names() -> None:
    assert [decoders.is_position_input(name) for name in ("position_ids", "positions", "input_ids")] == [
        True,
        True,
        False,
    ]
    assert [decoders.is_mask_input(name) for name in ("attention_mask", "mask", "masked")] == [True, True, False]
