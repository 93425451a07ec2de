"""Reports composed from ranked elements, in Japanese and English."""

import pytest

from rag_assets.graph.reports.context import (
    Claim,
    Elements,
    Entity,
    PartReport,
    Records,
    Relationship,
    SubCommunity,
    check_references,
    cited,
    pack_report,
)
from rag_assets.graph.reports.extraction import (
    Finding,
    Importance,
    Report,
    checked_report,
    compose_report,
    report_subject,
)
from rag_assets.text.tokens import estimate_tokens

AZURE = Entity(
    "a", 5, "Azure", "product_or_system", "Azure is the cloud of Microsoft. It grew by 31 percent. It has regions."
)
OPENAI = Entity("o", 7, "OpenAI", "organization", "OpenAI trains its models on Azure")
TEAMS = Entity("t", 9, "Teams", "product_or_system", "")
SQL = Entity("s", 11, "SQL Server", "product_or_system", "SQL Server also runs in the cloud.")
ENGLISH = Elements(
    [AZURE, OPENAI, TEAMS, SQL],
    [
        Relationship(23, AZURE, OPENAI, "Microsoft invests in OpenAI, which uses Azure.", 9),
        Relationship(24, AZURE, TEAMS, "", 6),
        Relationship(25, AZURE, SQL, "Customers move from SQL Server to Azure.", 5),
        Relationship(26, SQL, TEAMS, "Teams stores its messages in SQL Server.", 4),
    ],
    {"a": [Claim(AZURE, "suspected", "forecast", "2025", "Azure will grow further")]},
)

SCREEN = Entity(
    "g", 1, "ログイン画面", "画面", "利用者がIDとパスワードを入力する画面です。三回失敗するとロックします。"
)
API = Entity("k", 2, "認証API", "API", "認証トークンを発行するAPIです")
CODE = Entity("c", 3, "E0004", "エラーコード", "")
JAPANESE = Elements(
    [SCREEN, API, CODE],
    [Relationship(1, SCREEN, API, "ログイン画面は認証APIを呼び出す", 5), Relationship(2, API, CODE, "", 3)],
    {"k": [Claim(API, "true", "制約", "", "トークンの期限は30分である")]},
)


def test_english() -> None:
    report = compose_report(pack_report(ENGLISH, [], 8000), report_subject(ENGLISH), 1500)
    assert report == Report(
        "Azure, Teams and SQL Server",
        "Customers move from SQL Server to Azure. Microsoft invests in OpenAI, which uses Azure. "
        "[Data: Entities (5, 9, 11); Relationships (25, 23)]",
        0.0,
        "Its main names stand in 1.0 documents and 1.0 places on average; "
        "0 of 4 relationships are stated more than once.",
        (
            Finding(
                "Azure – Teams, SQL Server, OpenAI",
                "Azure is the cloud of Microsoft. It grew by 31 percent. Customers move from SQL Server to Azure. "
                "Microsoft invests in OpenAI, which uses Azure. Claim (suspected): Azure will grow further. "
                "[Data: Entities (5, 9, 11, 7); Relationships (25, 23, 24)]",
            ),
            Finding(
                "Teams – SQL Server",
                "Teams stores its messages in SQL Server. [Data: Entities (9, 11); Relationships (26)]",
            ),
        ),
    )
    assert report.text.startswith("# Azure, Teams and SQL Server\n\nCustomers move from SQL Server")
    assert "\n\n0.0 / 10: Its main names" in report.text
    assert report.text.count("\n\n## ") == 2


def test_japanese() -> None:
    report = compose_report(pack_report(JAPANESE, [], 8000), report_subject(JAPANESE), 1500)
    assert report == Report(
        "認証API、ログイン画面、E0004",
        "ログイン画面は認証APIを呼び出す。 [Data: Entities (2, 1, 3); Relationships (1)]",
        0.0,
        "中心となる名前は平均1.0文書の1.0箇所に現れ、関係2件のうち0件は複数の箇所に書かれている。",
        (
            Finding(
                "認証APIとログイン画面、E0004",
                "認証トークンを発行するAPIです。ログイン画面は認証APIを呼び出す。"
                "主張（確認済み）：トークンの期限は30分である。 [Data: Entities (2, 1, 3); Relationships (1, 2)]",
            ),
        ),
    )


def test_importance_is_not_size() -> None:
    assert Importance(4.0, 3.0, 2, 4).rating == 6.5  # .4 × 3/4 + .3 × 2/3 + .3 × 1/2
    assert Importance(4.0, 3.0, 2000, 4000).rating == 6.5
    assert Importance(1.0, 1.0, 0, 4000).rating == 0.0


def test_a_title_names_the_theme_and_words_before_codes() -> None:
    names = [
        ("C01", "identifier"),
        ("顧客番号", "data_item"),
        ("顧客名", "data_item"),
        ("顧客", "term"),
        ("氏名", "term"),
    ]
    entities = [Entity(name, number, name, kind, "") for number, (name, kind) in enumerate(names, start=1)]
    edges = [
        Relationship(n, entities[0], end, f"コード: C01 / 項目: {end.name}", 5) for n, end in enumerate(entities[1:])
    ]
    elements = Elements(entities, edges, {})
    report = compose_report(pack_report(elements, [], 8000), report_subject(elements), 1500)
    assert report.title == "顧客：顧客番号、顧客名、氏名"
    assert report.findings[0].explanation.startswith("コード: C01 / 項目: 顧客番号。")


def test_what_was_cut_and_what_says_nothing_is_no_finding() -> None:
    cut = Entity("x", 30, "Xbox", "product_or_system", "Xbox was sold in so many…")
    elements = Elements([AZURE, SQL, cut, TEAMS], [ENGLISH.relationships[2], Relationship(31, cut, TEAMS, "", 2)], {})
    report = compose_report(pack_report(elements, [], 8000), report_subject(elements), 1500)
    assert [finding.summary for finding in report.findings] == ["Azure – SQL Server"]
    assert "…" not in report.text


def test_a_finding_tells_what_none_has_told() -> None:
    report = compose_report(pack_report(ENGLISH, [], 8000), report_subject(ENGLISH), 1500)
    told = [sorted(cited(finding.explanation).relationships) for finding in report.findings]
    assert told == [[23, 24, 25], [26]]


def test_parts_come_first_and_keep_their_references() -> None:
    part = PartReport("Azure and SQL Server", "Both move to the cloud.", "Both. [Data: Entities (5, 11)]")
    few = Elements([AZURE, SQL], [ENGLISH.relationships[2]], {})
    limit = ENGLISH.length_tokens + 50
    context = pack_report(
        ENGLISH, [SubCommunity(few, part), SubCommunity(Elements([OPENAI, TEAMS], [], {}), None)], limit
    )
    assert context.reports == (part,)
    report = compose_report(context, report_subject(ENGLISH), 1500)
    assert report.findings[0] == Finding("Azure and SQL Server", "Both move to the cloud. [Data: Entities (5, 11)]")
    assert "Parts of it: Azure and SQL Server." in report.summary
    assert report.removed_references == 0


@pytest.mark.parametrize("limit", [60, 200, 600])
def test_length_is_limited(limit: int) -> None:
    spokes = [Entity(f"s{n}", n, f"Spoke {n}", "part", f"Spoke {n} is a part of the wheel.") for n in range(2, 60)]
    edges = [Relationship(n, spokes[n], spokes[n // 3], "They touch each other.", 9) for n in range(1, 58)]
    elements = Elements(spokes, edges, {})
    report = compose_report(pack_report(elements, [], 8000), report_subject(elements), limit)
    assert len(report.findings) == 1 or estimate_tokens(report.text) <= limit
    assert 1 <= len(report.findings) <= 10
    assert limit < 600 or len(report.findings) > 1


def test_every_reference_exists() -> None:
    for elements in (ENGLISH, JAPANESE):
        context = pack_report(elements, [], 300)
        report = compose_report(context, report_subject(elements), 1500)
        assert report.removed_references == 0
        assert check_references(report.text, context.records) == (report.text, 0)
        assert all(cited(finding.explanation).entities for finding in report.findings)


def test_checked_report_counts_over_all_its_texts() -> None:
    bad = "A [Data: Entities (1, 2)]."
    report = checked_report(Report(bad, bad, 5.0, bad, (Finding(bad, bad),)), Records(frozenset({1})))
    assert report.removed_references == 5
    assert report.text.count("[Data: Entities (1)]") == 5
