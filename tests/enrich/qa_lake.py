"""A lake that holds questions and facet values only, for the steps that are made from these."""

from collections.abc import Mapping, Sequence

from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.tables import DOCUMENT_FACETS, SYNTHETIC_QA
from rag_assets.parsing.records import rows
from rag_assets.store.lake import SHARDS, Lake, shard_of
from rag_assets.text.language import detect_language

Pairs = Sequence[tuple[str, str]]

DESIGN, OTHER, MANUAL, LONELY = "specs/a.xlsx", "specs/b.xlsx", "manuals/c.pdf", "manuals/d.pdf"
QUESTIONS: Mapping[str, Pairs] = {
    DESIGN: [
        ("顧客登録の目的は何ですか", "顧客マスタに顧客を登録する。"),
        ("顧客コードの桁数はいくつですか", "10桁である。"),
        ("顧客マスタの更新条件は何ですか", "承認済みの場合。"),
    ],
    OTHER: [
        ("顧客削除の目的は何ですか", "顧客マスタから顧客を削除する。"),
        ("顧客削除のエラーコードは何ですか", "E0004 である。"),
    ],
    MANUAL: [
        ("How is the scanner calibrated?", "Press both buttons of the scanner."),
        ("What does the red lamp of the scanner mean?", "The paper tray is empty."),
    ],
    LONELY: [("How fast is the printer?", "It prints 20 pages per minute.")],
}
FACETS: Mapping[str, Sequence[str]] = {
    DESIGN: ["kind=design", "area=customers"],
    OTHER: ["kind=design", "area=customers", "area=offices"],
    MANUAL: ["kind=manual", "area=offices"],
    LONELY: ["kind=manual", "area=offices"],
}


def store_questions(
    lake: Lake,
    questions: Mapping[str, Pairs] = QUESTIONS,
    facets: Mapping[str, Sequence[str]] = FACETS,
    unindexed: Sequence[str] = (),
) -> None:
    """Make both tables hold just these."""
    for shard in SHARDS:
        names = [name for name in questions if shard_of(name) == shard]
        if not names and not lake.inputs(SYNTHETIC_QA, shard):
            continue
        records = [
            {
                "qa_id": f"{name}#q{index}",
                "document_id": name,
                "shard": shard,
                "qa_index": index,
                "question": question,
                "answer": answer,
                "chunk_ids": [f"{name}#1.{index}"],
                "page_ids": [f"{name}#1"],
                "grade": 80.0,
                "indexed": f"{name}#q{index}" not in unindexed,
                "language": detect_language(f"{question} {answer}"),
                "method": "extractive",
            }
            for name in names
            for index, (question, answer) in enumerate(questions[name])
        ]
        values = [
            {
                "document_id": name,
                "shard": shard,
                "facet": value.partition("=")[0],
                "value": value.partition("=")[2],
                "confidence": 1.0,
                "evidence": "",
                "method": "extractive",
            }
            for name in names
            for value in facets[name]
        ]
        inputs = {name: digest(repr((questions[name], facets[name], tuple(unindexed)))) for name in names}
        lake.write(SYNTHETIC_QA, shard, rows(SYNTHETIC_QA.schema, records), inputs)
        lake.write(DOCUMENT_FACETS, shard, rows(DOCUMENT_FACETS.schema, values), inputs)
