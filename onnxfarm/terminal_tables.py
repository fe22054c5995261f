"""Tables of a terminal: what is coloured, and what a line above a table says in place of a column."""

from rich.table import Column, Table
from rich.text import Text

from farm.rules.wording.vocabulary import sign_of
from onnxfarm.outputs import table_of

# by the tone of a word
COLOURS = {"slower": "bold yellow", "faster": "cyan", "bad": "red"}


def lifted(table: Table, *heads: str) -> tuple[str, Table]:
    """What columns under these heads say that have one value in all rows, and the table without them."""
    texts = {column.header: {str(cell) for cell in column.cells} for column in table.columns if column.header in heads}
    # wrong outputs are marked in every row
    same = {
        head: said.pop()
        for head, said in texts.items()
        if table.row_count > 1 and len(said) == 1 and not min(said).startswith("fail")
    }
    kept = [column for column in table.columns if column.header not in same]
    narrower = table_of(
        *(
            Column(column.header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow)
            for column in kept
        )
    )
    narrower.caption = table.caption
    for row in zip(*(column.cells for column in kept), strict=True):
        narrower.add_row(*row)
    return ", ".join(f"{head} {said}" for head, said in same.items() if said), narrower


def coloured(text: str, key: str) -> Text:
    return Text(text, style=COLOURS.get(sign_of(key).tone, ""))
