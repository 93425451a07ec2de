"""Which questions need those before them, in Japanese and English; and how much the older ones weigh."""

import pytest

from rag_assets.query import Turn
from rag_assets.query.search.rewriting_rules import RuleRewriter, refers_back, with_history

FOLLOW_UPS_JA = """
日次のほうは何時に走るんですか
何回に分けて取れる？
いつまでに申請すればいい？
主管部署も教えて
購入日も
いつまでの予定？
申請はいつまで？
全部挙げて
どのくらいの頻度で送られますか？
それはどの画面で起きますか
それを教えてください
それの期限は何日ですか
これらの違いは何ですか
あれは誰が承認しますか
そこには何を書きますか
その場合はどうなりますか
この場合、誰に連絡しますか
その後の手続きを教えてください
上記の例外はありますか
先ほどの件の担当部署はどこですか
ほかにはありますか
前者の利点は何ですか
期限は？
エラーのときは？
PDFの場合は？
英語では？
なぜですか
いつまで？
誰が？
もっと詳しく教えてください
例を挙げてください
その期限は？
その画面の入力項目を教えてください
この規程の適用範囲は
そのときのHTTPステータスは？
そのAPIの戻り値は何ですか
その申請の承認者は誰ですか
顧客登録の画面でそれを変更できますか
それ以外の方法はありますか
同じことを英語の資料で確認できますか
では、取り消すときは？
0だとどういう意味？
""".strip().splitlines()
WHOLE_JA = """
お住まいの方は何を持参しますか
使い方は何ページに書いてありますか
OSPOとは
休むときどこに連絡すればいい？
遅刻したら何日以内に届け出る？
画面は全部でいくつ？
有給休暇の申請方法を教えてください
返品の条件は何ですか
有給休暇の申請期限は？
エラーコード E0004 は何ですか
それぞれの項目の桁数を教えてください
その年のアメリカの農薬業界の売上はいくらですか
そのシステム設計では顧客名の重複をどう検査しますか
この資料で顧客登録の権限を持つ利用者は誰ですか
顧客名が重複したとき、それはどのエラーになりますか
申請書と見積書があるとき、それらはどこへ提出しますか
どこに書類を提出しますか
あのときの議事録に書かれた予算の総額と内訳を教えてください
これまでの売上の推移を教えてください
同じ顧客名が登録された場合のエラー処理は何ですか
また、顧客登録で必須の項目は何ですか
そのまま登録ボタンを押すと、確認画面の表示内容はどうなりますか
そのほかの費用の精算方法と提出期限を総務部の規程で確認したい
顧客一覧の検索条件は
2023年度の売上高
どのように顧客を登録しますか
出張旅費はいくらまで支給されますか
誰が予算を承認しますか
ここ数年の採用人数の推移
このたびの組織変更で新設された部署はどこですか
テストの実施手順
それなりに大きいファイルの登録上限は何MBですか
これからの採用計画の人数を教えてください
そこそこの規模の案件の見積手順
どの文書に承認の手順がありますか
いつ契約が終了しますか
賞与はいつから
育休はいつまで
契約は何日前
退職はいつまで
社内規程も教えてください
情報セキュリティ規程も教えて
誰の担当ですか
子ども
今日も
そもそも
""".strip().splitlines()
FOLLOW_UPS_EN = """
And the parser one for that release?
Who approves it?
When does it expire?
How long does it take?
What about PDF files?
And for PDF?
Why?
How much?
Since when?
What is its price?
Where are they stored?
Who signed them?
What does that mean?
Is that one free?
How does this work?
What happens in that case?
Does the same apply to contractors?
Who works there?
And in Japanese?
And how many are starting their own business?
Tell me more.
Which one?
Who approves that request?
What are the fields of that screen?
When was this contract signed?
What is the price of its successor?
Is it described in the manual?
What is the latter for?
Can I do that?
With attachments?
Thanks. And who pays for it?
How are these different?
""".strip().splitlines()
WHOLE_EN = """
And one more thing: who approves the budget of the town?
What is the return policy?
How much did the pesticide industry sell in the US that year?
How is the customer table keyed in that system design?
Is it possible to cancel an order?
How long does it take to ship an order?
Is there a limit on attachments?
Are there any rules for remote work?
Which company that moved to Osaka signed the plan?
What documents that are confidential may be copied?
How do employees report their absences?
When a customer is registered twice, does it fail?
What is the access token and how is it renewed?
How does the supplier pay for its licence?
And what is the return policy?
What is the same-day delivery fee?
Who was the former director of finance?
Which rooms are above the library?
What is this year's budget for travel and training?
Does this system design describe how errors of the customer API are logged?
What is the IT department responsible for?
For which products is the warranty longer than two years?
What is the maximum file size?
How many people attended the annual meeting in those three cities?
Who is responsible for backups?
Return policy
E0004
Is it necessary that a manager signs travel requests?
Are the terms of that lease binding for the tenant's family members?
In the contract, what is said about damages, and who pays them?
What does error E0004 mean and where is it logged?
""".strip().splitlines()


@pytest.mark.parametrize("question", [*FOLLOW_UPS_JA, *FOLLOW_UPS_EN])
def test_what_names_nothing_of_its_own_refers_back(question: str) -> None:
    assert refers_back(question)


@pytest.mark.parametrize("question", [*WHOLE_JA, *WHOLE_EN])
def test_a_whole_question_does_not_refer_back(question: str) -> None:
    assert not refers_back(question)


@pytest.mark.parametrize("cases", [FOLLOW_UPS_JA, WHOLE_JA, FOLLOW_UPS_EN, WHOLE_EN])
def test_there_are_thirty_of_each_at_least(cases: list[str]) -> None:
    assert len(set(cases)) >= 30


def test_the_question_stands_before_what_it_refers_to_and_that_without_its_asking() -> None:
    history = [Turn("有給休暇の申請方法を教えてください"), Turn("それは誰が承認しますか")]
    assert with_history("その期限は？", history) == "その期限は？ それは 承認 有給休暇の申請方法"
    assert with_history("What is the maximum file size?", history) == "What is the maximum file size?"


def test_what_was_asked_before_leaves_a_whole_question_as_it_is() -> None:
    asked = "How much did the pesticide industry sell in the US that year?"
    rewrite = RuleRewriter().rewrite(asked, [Turn("What is the return policy?", "30 days")])
    assert rewrite.sentences == asked
    assert "return" not in rewrite.keywords


@pytest.mark.parametrize(
    ("asked", "question", "resolved"),
    [
        ("2割特例の適用対象者は？", "その適用期間は？", "2割特例"),
        ("顧客登録の取引IDは？", "その画面IDは？", "顧客登録"),
        ("顧客検索APIの入力項目は？", "その出力項目は？", "顧客検索API"),
        ("検索件数の上限は？", "登録件数は？", "上限"),
        ("顧客登録のDB登録仕様で顧客IDの情報取得元は？", "顧客名は？", "顧客登録のDB登録仕様で 情報取得元"),
        ("U0010005のメッセージ内容は？", "では、U0010006は？", "メッセージ内容"),
        ("エラーコードE0004の原因は？", "E0005は？", "エラーコード 原因"),
        ("2023年度の売上は？", "では2024年度は？", "売上"),
        ("採番対象ID 1103の最大値はいくつですか", "では1100は？", "採番対象ID 最大値"),
        ("分類211の説明は何ですか", "では、212は？", "分類 説明"),
        ("Kaigi2025の参加者は何名", "2024は？", "Kaigi2024の参加者は何名"),
        ("What was Microsoft Cloud revenue in FY24 Q4?", "And in FY23 Q4?", "Microsoft Cloud revenue Q4"),
        ("What is the lifetime of the access token?", "And of the refresh token?", "lifetime token"),
        ("What is the export limit?", "And the export format?", "export"),
        ("What does the user manual say about refunds?", "And the admin manual?", "manual say refunds"),
    ],
)
def test_what_a_question_names_in_the_place_of_something_else_replaces_it(
    asked: str, question: str, resolved: str
) -> None:
    assert with_history(question, [Turn(asked)]) == f"{question} {resolved}"


@pytest.mark.parametrize(
    ("asked", "question", "resolved"),
    [
        ("申請書の提出期限は？", "その期限を過ぎたら？", "申請書の提出期限"),
        ("有給休暇の申請期限は？", "その承認者は？", "有給休暇の申請期限"),
        ("顧客登録のエラーは？", "その原因は？", "顧客登録のエラー"),
        ("契約更新の手続きを教えてください", "その契約期間は？", "契約更新の手続き"),
        ("システム管理者の権限は？", "その管理者は？", "システム管理者の権限"),
        ("エラーコードE0004の原因は？", "それはE0005と同じですか", "エラーコードE0004の原因"),
        ("出張旅費の上限は？", "では宿泊費は？", "出張旅費の上限"),
        ("一泊12,000円を超える場合は？", "では20回は？", "一泊12,000円を超える場合"),
        ("Nablarch 1.4.9で修正された脆弱性は？", "その回避策は？", "Nablarch 1.4.9で修正された脆弱性"),
        ("What does error E0004 mean?", "Is it the same as E0005?", "error E0004 mean"),
        ("How do I reset the password?", "And the Wi-Fi password?", "reset password"),
        ("What is the maximum file size?", "And the minimum size?", "maximum file size"),
        ("What is the fee for members?", "What about non-members?", "fee members"),
    ],
)
def test_what_a_question_asks_of_what_was_named_replaces_nothing(asked: str, question: str, resolved: str) -> None:
    assert with_history(question, [Turn(asked)]) == f"{question} {resolved}"


def test_what_was_replaced_once_stays_away() -> None:
    asked = [Turn("U0010005のメッセージ内容は？"), Turn("U0010006は？")]
    assert with_history("U0010007は？", asked) == "U0010007は？ メッセージ内容"
    asked = [Turn("2割特例の適用対象者は？"), Turn("その適用期間は？")]
    assert with_history("その届出は必要ですか", asked) == "その届出は必要ですか その適用期間 2割特例"
