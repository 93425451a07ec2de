"""What a language model is taken to find in a window while calls are planned: names that stand in it, found by rules.

Steps that follow (descriptions, pairs of names, reports on communities) thereby have something to go on. What stays
out: extraction itself (`rag_assets.graph.mentions.dialogues`, `rag_assets.graph.mentions.extraction`).
"""

import json
import math
import re
from collections.abc import Iterator, Sequence

from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.graph.entity_types import TERM
from rag_assets.graph.mentions.dialogues import GLEAN_STEP, STEP
from rag_assets.graph.mentions.spans import Span, capitalised_names, identifiers, without_overlaps
from rag_assets.graph.names import LONGEST_CHARS, is_name
from rag_assets.models.structured import merged, parse_json
from rag_assets.text.folding import clean_name, fold_name
from rag_assets.text.language import detect_language
from rag_assets.text.scripts import KANJI, KATAKANA
from rag_assets.text.tokens import mean_tokens

SIMULATED_STEPS = (STEP, GLEAN_STEP)

_MISSED_OF = 4  # one name of so many is left to the round that asks for what was missed
# Published for windows of 600 tokens: 5 new entities each, which stand in more windows than one (Edge et al., "From
# Local to Global", 8,564 nodes of 1,669 windows and 15,754 of 3,197).
_WINDOW_TOKENS, _NAMES_OF_A_WINDOW, _NAMES_AT_LEAST = 600, 8, 4
_NAMES_OF_A_CLAIM = 3
_DESCRIPTION_CHARS = 120
_STRENGTH = 5
_MATERIAL = re.compile(r"<(document-[0-9a-f]+)>\n(.*)\n</\1>", re.DOTALL)
_COMPOUND = re.compile(f"[{KANJI}{KATAKANA}A-Za-z0-9_]{{3,}}")
_CELL = " | "


def simulated_findings(request: Request, most_tokens: int) -> JsonValue:
    """An answer to a request for the names in a window.

    Names are codes, capitalised names, Japanese compounds and keys of table rows, each described by the line that it
    stands in and related to the next one. As many are taken, at even distances, as models name in a window of its
    length and as the answer has room for; one of four is left to the round that asks for what was missed.

    Returns:
        None where the request is not for names, but whether there are more.
    """
    lists = json.loads(request.schema or "{}").get("properties", {})
    material = _MATERIAL.search(request.messages[0].text)
    if "entities" not in lists or material is None:
        return None
    found = _names(material[2])
    usual = max(_NAMES_AT_LEAST, _NAMES_OF_A_WINDOW * mean_tokens(material[2]) / _WINDOW_TOKENS) / _MISSED_OF
    if len(request.messages) == 1:
        usual *= _MISSED_OF - 1
    else:
        said = set(_names_in_answers(request))
        found = [each for each in found if fold_name(each[0]) not in said]
    count = min(len(found), lists["entities"]["maxItems"], math.ceil(usual))
    while True:
        answer = _answer([found[index * len(found) // count] for index in range(count)], claims="claims" in lists)
        tokens = mean_tokens(json.dumps(answer, ensure_ascii=False))
        if tokens <= most_tokens or not count:
            return answer
        count = min(count - 1, int(count * most_tokens / tokens))


def _answer(names: Sequence[tuple[str, str, str]], *, claims: bool) -> dict[str, JsonValue]:
    answer: dict[str, JsonValue] = {
        "entities": [{"name": name, "type": kind, "description": line} for name, kind, line in names],
        "relationships": [
            {"source": name, "target": names[index][0], "description": line, "strength": _STRENGTH}
            for index, (name, _, line) in enumerate(names[:-1], start=1)
        ],
    }
    if claims:
        answer["claims"] = [
            {
                "subject": name,
                "object": None,
                "type": kind,
                "status": "true",
                "start_date": None,
                "end_date": None,
                "description": line,
                "source_text": line,
            }
            for name, kind, line in names[::_NAMES_OF_A_CLAIM]
        ]
    return answer


def _names(text: str) -> list[tuple[str, str, str]]:
    """Names with their types and the beginnings of the lines that they stand in, each once, in order."""
    is_japanese = detect_language(text) == "ja"
    found: dict[str, tuple[str, str, str]] = {}
    for line in filter(str.strip, text.splitlines()):
        for span in without_overlaps(_spans(line, is_japanese=is_japanese)):
            name = clean_name(line[span.start : span.end])
            if len(name) <= LONGEST_CHARS and is_name(name):
                found.setdefault(fold_name(name), (name, span.type, line.strip()[:_DESCRIPTION_CHARS]))
    return list(found.values())


def _spans(line: str, *, is_japanese: bool) -> Iterator[Span]:
    yield from identifiers(line, is_japanese=is_japanese)
    key, separator, _ = line.partition(_CELL)
    if separator:
        yield Span(0, len(key), TERM)
    if is_japanese:
        for match in _COMPOUND.finditer(line):
            yield Span(*match.span(), TERM)
    else:
        for span, is_sure in capitalised_names(line):
            if is_sure:
                yield span


def _names_in_answers(request: Request) -> Iterator[str]:
    """Folded names of the answers before; one that breaks its schema is asked for anew and has said nothing."""
    for message in request.messages:
        if message.role != "assistant":
            continue
        try:
            value = merged(None, parse_json(message.text), request.schema or "{}")
        except ValueError:
            continue
        entities = value.get("entities") if isinstance(value, dict) else None
        for each in entities if isinstance(entities, list) else []:
            if isinstance(each, dict):
                yield fold_name(clean_name(str(each["name"])))
