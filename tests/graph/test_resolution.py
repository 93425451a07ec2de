"""Resolution of names: what is merged and why, what never is, and what a person decides."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mention_building import LikeEverything, LikeNothing, failing
from scripted_model import ScriptedModel

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.graph.entities.resolution import (
    Declaration,
    Merge,
    MergeRule,
    NameFacts,
    Overrides,
    ResolutionOptions,
    read_overrides,
    resolve_names,
    skeleton,
)
from rag_assets.graph.names import distinguishing_marks, is_acronym_of, is_part_of_name, may_be_one
from rag_assets.models.dialogue import Missing
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.text.folding import fold_name

OPTIONS = ResolutionOptions(similarity=0.9, questions=100)


def facts(*names: str, kind: str = "term") -> list[NameFacts]:
    """Names, the first the most frequent."""
    return [NameFacts(fold_name(name), name, kind, len(names) - place) for place, name in enumerate(names)]


def resolve(
    names: Sequence[NameFacts],
    declarations: Sequence[Declaration] = (),
    overrides: Overrides | None = None,
    model: ScriptedModel | None = None,
    embedder: LikeEverything | None = None,
    missing: Missing | None = None,
) -> list[Merge]:
    used = StructuredModel(model) if model else ExtractiveModel()
    chosen = overrides or Overrides()
    return resolve_names(names, declarations, chosen, OPTIONS, embedder or LikeEverything(), used, missing)


def merged(merges: list[Merge]) -> dict[str, tuple[str, MergeRule]]:
    return {merge.name_key: (merge.merged_into, merge.rule) for merge in merges}


def always_no(request: Request) -> JsonValue:
    return {"same": False}


def always_yes(request: Request) -> JsonValue:
    assert "<names-" in request.messages[0].text
    return {"same": True}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("問い合わせ番号", "問合せ番号"),
        ("インターフェース定義", "インタフェース定義"),
        ("富士通株式会社", "富士通"),
        ("Microsoft Corporation", "Microsoft"),
        ("access tokens", "access token"),
        ("the Bank of Japan", "Bank of Japan"),
        ("アクセス・トークン", "アクセストークン"),
    ],
)
def test_variant_spellings_are_one(first: str, second: str) -> None:
    names = facts(first, second)
    assert merged(resolve(names)) == {names[1].key: (names[0].key, MergeRule.SIMILAR)}
    assert resolve(names, embedder=LikeNothing()) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("企業情報登録画面", "企業情報削除画面"),
        ("取得", "取引"),
        ("import", "export"),
        ("Microsoft", "Microsoft Azure"),
        ("お知らせ", "知恵"),
    ],
)
def test_other_words_are_not(first: str, second: str) -> None:
    assert resolve(facts(first, second)) == []


DIFFERENT = [
    ("E0004", "E0005"),
    ("API v1", "API v2"),
    ("第1章", "第2章"),
    ("第一章", "第二章"),
    ("チームA", "チームB"),
    ("World War I", "World War II"),
    ("Windows 10", "Windows 11"),
    ("Windows", "Windows 11"),
    ("入力1.1", "入力1.2"),
    ("コードパターン①", "コードパターン②"),
    ("W11AA0101照会画面", "W11AA0102照会画面"),
    ("2023年度計画", "2024年度計画"),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_codes_versions_and_numbers_keep_names_apart(first: str, second: str) -> None:
    names = facts(first, second)
    declared = [Declaration(names[1].key, names[0].key, "declared")]
    assert resolve(names, declared, model=ScriptedModel(always_yes)) == []


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["エラー", "画面", "api v", "chapter "]), st.text("0123456789ABab-.一二", max_size=4)
        ),
        min_size=2,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_names_with_different_marks_are_never_merged(parts: list[tuple[str, str]], chance: random.Random) -> None:
    keys = sorted({fold_name(word + code) for word, code in parts})
    names = [NameFacts(key, key, "term", chance.randint(1, 9)) for key in keys]
    declared = [Declaration(chance.choice(keys), chance.choice(keys), "x") for _ in keys]
    found = resolve(names, declared, model=ScriptedModel(always_yes))
    for merge in found:
        assert distinguishing_marks(merge.name_key) == distinguishing_marks(merge.merged_into)
    heads = {merge.merged_into for merge in found}
    assert not heads & {merge.name_key for merge in found}


@settings(deadline=None)
@given(st.permutations(range(8)), st.permutations(range(4)))
def test_the_order_of_names_does_not_matter(order: list[int], order_of_declarations: list[int]) -> None:
    names = facts(
        "住登外者宛名番号管理",
        "宛名管理",
        "宛名管理機能",
        "問い合わせ窓口",
        "問合せ窓口",
        "問合わせ窓口",
        "ABC社",
        "XYZ社",
    )
    declared = [
        Declaration("宛名管理", "住登外者宛名番号管理", "a"),
        Declaration("宛名管理", "住登外者宛名番号管理", "b"),
        Declaration("abc社", "xyz社", "c"),
        Declaration("xyz社", "abc社", "d"),
    ]
    expected = resolve(names, declared)
    shuffled = resolve([names[place] for place in order], [declared[place] for place in order_of_declarations])
    assert shuffled == expected
    assert merged(expected)["宛名管理"] == ("住登外者宛名番号管理", MergeRule.DECLARED)
    assert merged(expected)["問合わせ窓口"] == ("問い合わせ窓口", MergeRule.SIMILAR)


def test_declared_aliases_lead_to_the_full_name() -> None:
    names = facts("SSO", "Single Sign-On")
    found = resolve(names, [Declaration("sso", "single sign on", "Single Sign-On (SSO)")], embedder=LikeNothing())
    (merge,) = found
    assert (merge.name_key, merge.merged_into, merge.rule) == ("sso", "single sign on", MergeRule.DECLARED)
    assert merge.evidence == "Single Sign-On (SSO)"


def test_an_alias_of_two_names_is_of_none() -> None:
    names = facts("管理システム", "顧客管理システム", "在庫管理システム")
    declared = [Declaration("管理システム", full, "x") for full in ("顧客管理システム", "在庫管理システム")]
    assert resolve(names, declared, embedder=LikeNothing()) == []


@pytest.mark.parametrize(
    ("first", "second"), [("田中太郎", "田中"), ("Satya Nadella", "Nadella"), ("田中", "田中花子"), ("amy hood", "amy")]
)
def test_a_surname_is_no_person(first: str, second: str) -> None:
    names = facts(first, second, kind="person")
    declared = [
        Declaration(names[1].key, names[0].key, "declared"),
        Declaration(names[0].key, names[1].key, "declared"),
    ]
    assert resolve(names, declared, model=ScriptedModel(always_yes)) == []


def test_identifiers_are_not_compared() -> None:
    names = facts("user-code-list", "user code lists", kind="identifier")
    embedder = LikeEverything()
    assert resolve(names, model=ScriptedModel(always_yes), embedder=embedder) == []
    assert embedder.embedded == []


def test_a_model_confirms_near_names() -> None:
    names = facts("顧客情報登録処理", "顧客情報登録機能", "在庫引当")

    def script(request: Request) -> JsonValue:
        return {"same": "登録処理" in request.messages[0].text and "登録機能" in request.messages[0].text}

    model = ScriptedModel(script)
    found = resolve(names, model=model)
    assert merged(found) == {"顧客情報登録機能": ("顧客情報登録処理", MergeRule.MODEL)}
    assert found[0].similarity == 1.0
    assert len(model.asked) == 1
    assert resolve(names, model=ScriptedModel(always_no)) == []


def test_a_model_that_fails_confirms_nothing_and_is_asked_again() -> None:
    names = facts("顧客情報登録処理", "顧客情報登録機能")
    missing = Missing()
    found = resolve(names, model=ScriptedModel(failing), missing=missing)
    assert found == []
    assert (missing.causes, missing.again) == ({"failed": 1}, True)


def test_only_names_with_much_in_common_are_embedded() -> None:
    embedder = LikeEverything()
    names = facts(*(f"{first}{second}" for first in "東西南北中" for second in ("海岸線路", "山脈地帯", "平野部分")))
    resolve([*names, *facts("独立峰")], model=ScriptedModel(always_yes), embedder=embedder)
    assert "独立峰" not in embedder.embedded


def test_a_person_decides(tmp_path: Path) -> None:
    path = tmp_path / "merges.csv"
    path.write_text("name,merge_into\nE0005,E0004\n問合せ番号,\nなにか,E0004\n", "utf-8-sig")
    names = facts("E0005", "E0004", "問い合わせ番号", "問合せ番号")
    found = resolve(names, overrides=read_overrides(path))
    assert merged(found) == {"e0005": ("e0004", MergeRule.OVERRIDE)}
    assert found[0].evidence == "merges.csv: e0005 → e0004"


def test_names_may_be_decided_to_be_one_by_a_name_that_no_document_holds(tmp_path: Path) -> None:
    path = tmp_path / "merges.csv"
    path.write_text("name,merge_into\nAcme US,Acme Group\nAcme Europe,Acme Group\nalpha,beta\nbeta,gamma\n", "utf-8")
    found = merged(resolve(facts("acme us", "acme europe", "alpha", "gamma"), overrides=read_overrides(path)))
    assert found == {"acme us": ("acme europe", MergeRule.OVERRIDE), "alpha": ("gamma", MergeRule.OVERRIDE)}


def test_decisions_may_follow_on_each_other(tmp_path: Path) -> None:
    path = tmp_path / "merges.csv"
    path.write_text("name,merge_into\nあか,あお\nあお,きいろ\n", "utf-8")
    found = resolve(facts("あか", "あお", "きいろ"), overrides=read_overrides(path))
    assert merged(found) == {"あか": ("きいろ", MergeRule.OVERRIDE), "あお": ("きいろ", MergeRule.OVERRIDE)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the columns name,merge_into"),
        ("name\nx\n", "line 1: expected the columns name,merge_into, found 'name'"),
        ("name,merge_into\na\n", "line 2: expected name,merge_into, found 'a'"),
        ("name,merge_into\n,b\n", "line 2: expected name,merge_into"),
        ("name,merge_into\nサーバー,サーバ\n", "line 2: .* are one name already"),
        ("name,merge_into\na1,b1\na1,c1\n", "line 3: 'a1' stands twice"),
        ("name,merge_into\na1,\na1,c1\n", "line 3: 'a1' stands twice"),
        ("name,merge_into\na1,b1\nb1,a1\n", "in a circle: a1 → b1 → a1"),
    ],
)
def test_a_file_of_decisions_that_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "merges.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(SettingsError, match=message):
        read_overrides(path)


def test_a_file_of_decisions_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing\.csv"):
        read_overrides(tmp_path / "nothing.csv")
    assert read_overrides(None) == Overrides()


def test_parts_of_names() -> None:
    assert skeleton("問い合わせ番号") == skeleton("問合せ番号")
    assert skeleton("お知らせ") == "お知らせ"
    assert is_part_of_name("nadella", "satya nadella")
    assert not is_part_of_name("satya nadella", "amy nadella")
    assert is_acronym_of("DOD", "Department of Defense")
    assert not is_acronym_of("W3C", "World Wide Web Consortium")
    assert not may_be_one("e0004", "e0005")
