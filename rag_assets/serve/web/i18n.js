/** All texts, English and Japanese, and how numbers and times are written. */

import { keptLanguage } from "/session.js";

const TEXTS = {
  // frame
  skipToContent: ["Skip to content", "本文へ移動"],
  mainNavigation: ["Main", "メイン"],
  language: ["Language", "言語"],
  token: ["API token", "APIトークン"],
  tokenHelp: [
    "The server asks for its token. It is kept until this window is closed.",
    "サーバーがトークンを求めています。このウィンドウを閉じるまで保持されます。",
  ],
  tokenWrong: ["The server refused this token.", "サーバーがこのトークンを拒否しました。"],
  tokenField: ["Token", "トークン"],
  save: ["Save", "保存"],
  cancel: ["Cancel", "キャンセル"],
  problem: ["This cannot be shown", "表示できません"],
  tryAgain: ["Try again", "再試行"],
  more: ["Show more", "さらに表示"],
  none: ["None", "なし"],
  noConnection: ["The server cannot be reached.", "サーバーに接続できません。"],
  versionServed: [
    "Version {n}, published {time}; documents: {documents}",
    "バージョン {n}（{time} 公開）、文書数 {documents}",
  ],

  // ask
  ask: ["Ask", "質問"],
  askTitle: ["Ask the documents", "文書に質問する"],
  question: ["Question", "質問文"],
  questionHint: ["Enter asks, Shift+Enter begins a new line.", "Enter で質問、Shift+Enter で改行。"],
  searchOnly: ["Search only", "検索のみ"],
  stop: ["Stop", "中止"],
  newConversation: ["New conversation", "新しい会話"],
  followUp: [
    "Further questions are understood together with those before.",
    "続けて質問すると、前の質問も踏まえて答えます。",
  ],
  options: ["Options", "オプション"],
  conversation: ["Conversation", "会話"],
  searching: ["Searching…", "検索中…"],
  writing: ["Passages found: {n}. Writing the answer…", "該当箇所 {n} 件。回答を作成中…"],
  brokeOff: [
    "The connection broke before the answer was complete.",
    "回答が完成する前に接続が切れました。",
  ],
  stopped: ["Stopped.", "中止しました。"],
  answer: ["Answer", "回答"],
  answerReady: ["The answer is ready. Sources: {n}", "回答ができました。出典 {n} 件"],
  resultsReady: ["Results: {n}", "検索結果 {n} 件"],
  sources: ["Sources", "出典"],
  results: ["Results", "検索結果"],
  noResults: ["Nothing was found.", "見つかりませんでした。"],
  notInDocuments: ["Not in the documents", "文書に記載なし"],
  notSure: ["No passage surely answers the question", "質問への答えと言い切れる記載はありません"],
  notConfirmed: ["The sources confirm no sentence of this answer", "この回答には出典で確認できた文がありません"],
  nearest: ["Nearest passages", "最も近い記載"],
  cites: ["Source {n}: {label}", "出典 {n}: {label}"],
  unsupported: ["Not confirmed by the sources", "出典で確認できません"],
  unchecked: ["Could not be compared with the sources", "出典と照合できません"],
  unfounded: ["Not in the sources: {words}", "出典にない語: {words}"],
  writtenBy: ["Written by {model} and checked against the sources.", "{model} が作成し、出典と照合しました。"],
  quoted: ["Quoted as it stands, without a language model.", "言語モデルを使わず、原文を引用しています。"],
  modelFailed: ["The language model failed: {reason}", "言語モデルが失敗しました: {reason}"],
  removedCitations: [
    "Citations of sources that do not exist were removed: {n}",
    "存在しない出典への参照を除きました: {n} 件",
  ],
  quoteMissing: ["The quoted words do not stand here, or do not carry the answer", "引用された語句がここにないか、答えの根拠になりません"],
  fullText: ["Whole text", "全文"],
  lessText: ["Less", "短く表示"],
  score: ["Score {score}", "スコア {score}"],
  foundByQuestions: ["Found by the questions", "次の質問から見つかりました"],

  // options of a search
  mode: ["Mode", "検索方式"],
  afterwards: ["Then find passages by", "その後の検索方式"],
  resultCount: ["Results, at most", "件数の上限"],
  granularity: ["A result is", "結果の単位"],
  chunk: ["a passage", "箇所"],
  page: ["a page or sheet", "ページ・シート"],
  document: ["a document", "文書"],
  granularityHint: ["For “Search only”", "「検索のみ」で使います"],
  filters: ["Only in", "絞り込み"],
  folder: ["Folder", "フォルダー"],
  format: ["Format", "形式"],
  anyFormat: ["Any format", "すべての形式"],
  anyFolder: ["All folders", "すべてのフォルダー"],

  // trace
  trace: ["What was done", "処理の内訳"],
  traceTotal: [
    "{milliseconds} ms, model calls: {calls}, cost: {cost}",
    "{milliseconds} ミリ秒、モデル呼び出し {calls} 回、費用 {cost}",
  ],
  step: ["Step", "処理"],
  index: ["Index", "索引"],
  candidates: ["Candidates", "候補数"],
  milliseconds: ["ms", "ミリ秒"],
  details: ["Details", "詳細"],
  steps: ["Steps", "処理の一覧"],
  scores: ["Scores before and after", "前後のスコア"],
  before: ["Before", "前"],
  after: ["After", "後"],
  "operation.answer": ["answer", "回答の作成"],
  "operation.choose": ["choose", "方式の選択"],
  "operation.choose_level": ["choose_level", "階層の選択"],
  "operation.detect": ["detect", "種類の判定"],
  "operation.documents": ["documents", "該当文書の一覧"],
  "operation.embed": ["embed", "質問のベクトル化"],
  "operation.feedback": ["feedback", "検索結果による補正"],
  "operation.fetch": ["fetch", "本文の取り出し"],
  "operation.fuse": ["fuse", "順位の統合"],
  "operation.history": ["history", "会話の参照"],
  "operation.imagine": ["imagine", "仮の箇所の作成"],
  "operation.inventory": ["inventory", "ファイルの集計"],
  "operation.key_terms": ["key_terms", "キーワード抽出"],
  "operation.left_out": ["left_out", "省いたもの"],
  "operation.list": ["list", "条件に合うもの"],
  "operation.map": ["map", "部分回答の作成"],
  "operation.matching": ["matching", "語句検索"],
  "operation.nearest": ["nearest", "意味検索"],
  "operation.overview": ["overview", "概要"],
  "operation.pack": ["pack", "資料の詰め合わせ"],
  "operation.part": ["part", "検索の一部"],
  "operation.plan": ["plan", "検索の計画"],
  "operation.quote": ["quote", "引用の選択"],
  "operation.rank": ["rank", "並べ替え"],
  "operation.references": ["references", "報告の参照先"],
  "operation.reports": ["reports", "報告の選択"],
  "operation.rerank": ["rerank", "再順位付け"],
  "operation.rewrite": ["rewrite", "質問の書き換え"],
  "operation.rows": ["rows", "表の行"],
  "operation.seeds": ["seeds", "起点の要素"],
  "operation.select": ["select", "選択"],
  "operation.sub_query": ["sub_query", "部分検索"],
  "operation.synonyms": ["synonyms", "同じ意味の語"],
  "operation.walk": ["walk", "グラフの探索"],
  "index.chunks": ["chunks", "箇所"],
  "index.summaries": ["summaries", "要約"],
  "index.questions": ["questions", "想定質問"],
  "index.entities": ["entities", "要素"],
  "index.reports": ["reports", "報告"],
  passage: ["Passage", "箇所"],
  modelCalls: ["Model calls", "モデル呼び出し"],
  model: ["Model", "モデル"],
  tokens: ["Tokens in / out", "トークン 入力 / 出力"],
  cost: ["Cost", "費用"],
  seconds: ["Seconds", "秒"],
  fromStore: ["stored answer", "保存済みの回答"],

  // page
  openPage: ["Open the page", "ページを開く"],
  pageNumber: ["Page {n}", "{n} ページ"],
  sectionNumber: ["Section {n}", "第 {n} 節"],
  pageOf: ["{n} of {count}", "{n} / {count}"],
  pages: ["Pages", "ページ"],
  pageNavigation: ["Pages of the document", "文書内のページ"],
  previousPage: ["Previous page", "前のページ"],
  nextPage: ["Next page", "次のページ"],
  goToPage: ["Go to page", "ページを選ぶ"],
  citedCells: ["Cited cells: {cells}", "引用されたセル: {cells}"],
  citedPlace: ["The cited place is marked.", "引用箇所を強調しています。"],
  citedMissing: ["The cited place is not on this page as it is now.", "引用箇所は現在のページにありません。"],
  citedBox: ["Cited place", "引用箇所"],
  pageText: ["Text of the page", "ページのテキスト"],
  pictureOf: ["Picture of page {n}", "{n} ページの画像"],
  noPicture: ["There is no picture of this page: {reason}", "このページの画像はありません: {reason}"],
  tableAt: ["Table {range}", "表 {range}"],
  table: ["Table", "表"],
  rowNumber: ["Row", "行"],
  rowsLeftOut: ["Rows not shown: {n}", "省略した行: {n}"],
  showAllRows: ["Show all rows", "すべての行を表示"],
  diagram: ["Diagram", "図"],
  note: ["Note", "注記"],
  header: ["Header or footer", "ヘッダー・フッター"],
  emptyPage: ["This page holds no text.", "このページにはテキストがありません。"],
  hidden: ["hidden", "非表示"],
  ocr: ["Read from a picture, confidence {share}", "画像から読み取り、信頼度 {share}"],
  summary: ["Summary", "要約"],
  "role.cover": ["cover", "表紙"],
  "role.revision_history": ["revision history", "改訂履歴"],
  "role.contents": ["table of contents", "目次"],

  // documents
  documents: ["Documents", "文書"],
  words: ["Words in name or title", "名前・タイトルの語"],
  state: ["State", "状態"],
  anyState: ["Any state", "すべての状態"],
  parsed: ["read", "読み取り済み"],
  failed: ["failed", "失敗"],
  partly: ["partly: {n}", "一部未読: {n}"],
  show: ["Show", "表示"],
  documentsFound: ["Documents: {n}", "文書 {n} 件"],
  documentsFailed: ["failed: {n}", "失敗 {n} 件"],
  documentsPartlyRead: ["read in part: {n}", "一部未読 {n} 件"],
  noDocuments: ["No document is like this.", "該当する文書はありません。"],
  name: ["Name", "名前"],
  size: ["Size", "サイズ"],
  bytes: ["{n} bytes", "{n} バイト"],
  modified: ["Changed", "更新日時"],
  firstDocuments: ["First documents", "先頭へ"],
  nextDocuments: ["Next documents", "次へ"],
  failures: ["What could not be read", "読み取れなかったもの"],
  whole: ["whole document", "文書全体"],
  facets: ["Kind of document", "文書の種類"],
  costs: ["Language models", "言語モデル"],
  calls: ["Calls", "呼び出し"],
  passages: ["Passages", "箇所"],
  questions: ["Questions that it answers", "想定質問"],
  characters: ["Characters", "文字数"],
  "cause.unreadable": ["cannot be opened", "ファイルを開けません"],
  "cause.unsupported_format": ["unknown format", "未対応の形式"],
  "cause.encrypted": ["encrypted", "暗号化されています"],
  "cause.malformed": ["damaged", "破損しています"],
  "cause.too_large": ["too large", "大きすぎます"],
  "cause.timeout": ["took too long", "時間切れ"],
  "cause.memory": ["needs too much memory", "メモリー不足"],
  "cause.crashed": ["reader crashed", "読み取り処理が異常終了"],
  "cause.not_calculated": ["formulas without results", "計算結果のない数式"],
  "cause.no_text": ["no text", "テキストなし"],

  // communities
  communities: ["Communities", "コミュニティ"],
  noGraph: [
    "There is no entity graph: the setting graph.enabled is off. RAG_GRAPH__ENABLED=true rag-assets index makes it",
    "要素のグラフがありません (設定 graph.enabled が無効)。次のコマンドで作られます: RAG_GRAPH__ENABLED=true rag-assets index",
  ],
  level: ["Level", "階層"],
  levelName: ["Level {n}", "階層 {n}"],
  coarsest: ["Level {n}, the coarsest", "階層 {n}（最も大まか）"],
  members: ["Entities", "要素"],
  membersShown: ["Entities (the first {shown} of {n})", "要素（{n} 件中 {shown} 件）"],
  relationships: ["Relationships", "関係"],
  communityFacts: ["entities: {size}, relationships: {edges}", "要素 {size}、関係 {edges}"],
  rating: ["Impact {rating} of 10", "重要度 {rating} / 10"],
  report: ["Report", "報告"],
  noReport: ["No report has been written on this community.", "このコミュニティの報告はまだありません。"],
  findings: ["Findings", "要点"],
  parts: ["Parts", "下位のコミュニティ"],
  parent: ["Community above", "上位のコミュニティ"],
  communityNamed: ["Community {id}", "コミュニティ {id}"],
  graph: ["Graph", "グラフ"],
  graphLabel: ["Graph of {nodes} entities and {edges} relationships", "要素 {nodes} 件、関係 {edges} 件のグラフ"],
  graphHint: [
    "Drag to move, choose an entity to see it. The list of entities below holds the same. Keys: arrows, + and −.",
    "ドラッグで移動、要素を選ぶと詳細を表示します。下の一覧からも選べます。キー操作: 矢印、+、−。",
  ],
  zoomIn: ["Zoom in", "拡大"],
  zoomOut: ["Zoom out", "縮小"],
  wholeGraph: ["Whole graph", "全体を表示"],
  entity: ["Entity", "要素"],
  type: ["Type", "種類"],
  mentions: ["Mentions", "言及"],
  aliases: ["Also: {names}", "別名: {names}"],
  namedOn: ["Named on", "記載ページ"],
  loading: ["Loading…", "読み込み中…"],

  // compare
  compare: ["Compare", "比較"],
  compareTitle: ["Compare modes of search", "検索方式の比較"],
  compareChoose: ["Two to four modes", "検索方式（2〜4 個）"],
  compareCount: ["Choose two to four modes.", "検索方式を 2〜4 個選んでください。"],
  withAnswers: ["With answers", "回答も作成する"],
  compareDone: ["All modes are done.", "すべての方式が完了しました。"],
  alsoIn: ["also in {modes}", "{modes} にもあり"],
  onlyHere: ["only here", "この方式のみ"],

  // feedback
  answerIsRight: ["This answer is right", "この回答は正しい"],
  answerIsWrong: ["This answer is wrong", "この回答は誤り"],
  thumbTaken: [
    "Thank you: it is a draft of the set that versions are measured by.",
    "ありがとうございます。評価用の質問集に下書きとして追加しました。",
  ],

  // evaluation
  evaluation: ["Evaluation", "評価"],
  noEvaluations: ["Nothing was evaluated yet.", "評価の記録はまだありません。"],
  howToEvaluate: [
    "rag-assets questions new questions.jsonl\nrag-assets questions accept questions.jsonl --all\nrag-assets evaluate questions.jsonl --answers --record",
    "rag-assets questions new questions.jsonl\nrag-assets questions accept questions.jsonl --all\nrag-assets evaluate questions.jsonl --answers --record",
  ],
  intervals: [
    "Brackets: 95 % intervals, too narrow where a star stands (fewer than 20 questions).",
    "角括弧は 95 % 信頼区間。* は 20 問未満で、区間が狭すぎることを示します。",
  ],
  chooseToCompare: ["To compare", "比較する"],
  chooseTwo: ["Choose two.", "2 つ選んでください。"],
  evaluated: ["Evaluated", "評価日時"],
  system: ["Mode", "方式"],
  version: ["Version", "版"],
  versionNumber: ["version {n}", "版 {n}"],
  heldBack: ["held back", "公開見送り"],
  questionSet: ["Set", "質問集"],
  chosenOn: ["used for choosing", "選択に使用"],
  madeBy: ["Made by", "実行元"],
  "madeBy.evaluate": ["command", "コマンド"],
  "madeBy.job": ["Dagster job", "Dagster ジョブ"],
  "madeBy.gate": ["gate", "公開前の検査"],
  questionCount: ["Asked", "質問数"],
  answersRight: ["Answers right", "回答の正答率"],
  evaluationsCompared: ["Two evaluations compared", "2 つの評価の比較"],
  evaluationRun: ["Run", "評価結果"],
  differences: ["Differences, first minus second", "差（1 − 2）"],
  measure: ["Measure", "指標"],
  difference: ["Difference", "差"],
  pHolm: ["p (Wilcoxon, Holm)", "p 値（Wilcoxon、Holm）"],
  betterWorse: ["Better / worse", "改善 / 悪化"],
  changedQuestions: ["What differs: {n}", "差のある質問: {n} 件"],
  changed: ["What differs", "差のある質問"],
  asked: ["Asked", "質問"],
  whereItFails: ["Where it fails", "失敗の内訳"],
  evaluatedQuestions: ["What was asked: {n}", "質問 {n} 件"],
  anyType: ["Any type", "すべての種類"],
  "level.passage": ["Passages", "箇所"],
  "level.page": ["Pages", "ページ"],
  "level.document": ["Documents", "文書"],
  "level.answer": ["Answers", "回答"],
  "dimension.type": ["Type", "種類"],
  "dimension.language": ["Language", "言語"],
  "dimension.format": ["Format", "形式"],
  "dimension.length": ["Length of the document", "文書の長さ"],
  "measure.correct": ["correct", "正答"],
  "measure.right": ["right", "正解"],
  "measure.wrong": ["wrong", "誤答"],
  "measure.refused": ["refused", "記載なしと回答"],
  "measure.invented": ["invented", "作り話"],
  "measure.cited passage": ["cited passage", "根拠の引用"],
  "group.none": ["none", "なし"],
  "group.under 10,000 characters": ["under 10,000 characters", "10,000 字未満"],
  "group.10,000 to 100,000": ["10,000 to 100,000", "10,000〜100,000 字"],
  "group.100,000 characters and more": ["100,000 characters and more", "100,000 字以上"],
  "writer.extractive": ["extractive", "言語モデルなし"],
  "outcome.right": ["right", "正解"],
  "outcome.wrong": ["wrong", "誤答"],
  "outcome.refused": ["said not to be there", "記載なしと回答"],
  "outcome.invented": ["answered, though it is not there", "記載がないのに回答"],
  "outcome.correct": ["right: it is not there", "正解（記載なし）"],
  askedBefore: ["Asked before: {questions}", "前の質問: {questions}"],
  expected: ["Expected", "期待される根拠"],
  expectedNothing: ["Expected: that the documents do not hold it", "期待: 文書に記載なし"],
  place: ["Place", "場所"],
  quote: ["Quote", "引用"],
  remark: ["Remark", "備考"],
  orThis: ["enough alone", "単独で十分"],
  notIndexed: ["not indexed", "索引にありません"],
  or: ["or", "または"],
  and: ["and", "かつ"],
  rightAnswerHolds: ["A right answer holds: {words}", "正解が含む語: {words}"],
  holdsEvidence: ["holds the evidence", "根拠を含む"],
  notSearched: ["Not searched.", "検索は行っていません。"],
  values: ["Values", "指標の値"],
};

/** What the server says in English, and how Japanese says it. */
const SAID = [
  [/^there is no such document$/, "この文書はありません。"],
  [/^there is no such page$/, "このページはありません。"],
  [/^there is no such entity$/, "この要素はありません。"],
  [/^there is no such community$/, "このコミュニティはありません。"],
  [/^there is no such run$/, "この評価はありません。"],
  [/^there is no such question in this run$/, "この評価にその質問はありません。"],
  [
    /^there is no picture: the file is no PDF, is gone, has changed, or has no such page$/,
    "PDF ではないか、ファイルがないか変わったか、そのページがありません。",
  ],
  [
    /^the gate held back (\d+) versions? by this set, so it was used for choosing$/,
    "公開前の検査がこの質問集で $1 つの版の公開を見送ったため、選択に使用されています。",
  ],
  [
    /^(\d+) of (\d+) questions were used for choosing: measure the choice by others$/,
    "$2 問中 $1 問は選択に使用されています。選んだ結果は別の質問で測ってください。",
  ],
  [/^(\d+) questions are drafts that nobody has accepted$/, "$1 問はまだ承認されていない下書きです。"],
  [
    /^(\d+) of (\d+) questions: evidence is not indexed as a (\w+), and counts as not found: (.*)$/,
    "$2 問中 $1 問は根拠が索引になく（$3）、見つからなかったものと数えます: $4",
  ],
  [
    /^(.+): the language model failed on (\d+) questions; passages were quoted instead$/,
    "$1: 言語モデルが $2 問で失敗し、代わりに原文を引用しました。",
  ],
  [
    /^(.+): (\d+) calls of the language model gave no answer; it was done without$/,
    "$1: 言語モデルの呼び出し $2 回に回答がなく、なしで処理しました。",
  ],
  [
    /^the set is small: (\w+) (\S+) is the same on all of (\d+) questions, which leaves room for (\S+) of others where it is not$/,
    "質問集が小さすぎます。$1 $2 は $3 問すべてで同じですが、ほかの質問の $4 で異なる可能性があります。",
  ],
  [
    /^the set is small: (\d+) questions show differences of (\S+) or more in (\w+) (\S+); (\S+) needs about (\S+)$/,
    "質問集が小さすぎます。$1 問で分かるのは $3 $4 の $2 以上の差です。$5 の差には約 $6 問が必要です。",
  ],
  [
    /^(\d+) questions show differences of (\S+) or more in (\w+) (\S+); (\S+) needs about (\S+)$/,
    "$1 問で分かるのは $3 $4 の $2 以上の差です。$5 の差には約 $6 問が必要です。",
  ],
];

const LANGUAGES = ["en", "ja"];

let chosen = LANGUAGES.includes(keptLanguage.get()) ? keptLanguage.get() : ofBrowser();

function ofBrowser() {
  const wanted = navigator.languages ?? [navigator.language];
  return wanted.map((name) => name.slice(0, 2)).find((name) => LANGUAGES.includes(name)) ?? "en";
}

export const language = () => chosen;

export function chooseLanguage(name) {
  chosen = name;
  keptLanguage.set(name);
}

/** A text with values in the place of `{names}`. */
export function t(key, values = {}) {
  const texts = TEXTS[key];
  if (!texts) throw new Error(`no text ${key}`);
  return texts[LANGUAGES.indexOf(chosen)].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Take texts of an open list of names from the server: `{name: {en, ja}}`. */
export function learnNames(kind, texts) {
  for (const [name, { en, ja }] of Object.entries(texts)) {
    TEXTS[`${kind}.${name}`] = [`${en} (${name})`, `${ja}（${name}）`];
  }
}

/** The text of one of an open list of names, as of a mode or a cause; a name without one stands for itself. */
export function named(kind, name) {
  return TEXTS[`${kind}.${name}`] ? t(`${kind}.${name}`) : name;
}

/** What the server says, as far as the page knows it in the chosen language. */
export function said(text) {
  const known = chosen === "ja" && SAID.find(([pattern]) => pattern.test(text));
  return known ? text.replace(...known) : text;
}

/** A measure by its level and name, as `passage R@5`. */
export function levelMeasure(level, measure) {
  return chosen === "en" ? `${level} ${measure}` : `${named("level", level)} ${named("measure", measure)}`;
}

/** What a page is called: its name, else its number. */
export function pageName(page) {
  return page.page_name ?? t(page.kind === "section" ? "sectionNumber" : "pageNumber", { n: page.page_number });
}

export function number(value, digits = 0) {
  return new Intl.NumberFormat(chosen, { maximumFractionDigits: digits }).format(value);
}

export function dollars(value) {
  const digits = value > 0 && value < 0.01 ? 6 : 2;
  const style = { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: digits };
  return new Intl.NumberFormat(chosen, style).format(value);
}

export function bytes(value) {
  if (value < 1000) return t("bytes", { n: number(value) });
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const power = Math.min(units.length - 1, Math.floor(Math.log(Math.max(value, 1)) / Math.log(1000)));
  const style = { style: "unit", unit: units[power], unitDisplay: "short", maximumFractionDigits: 1 };
  return new Intl.NumberFormat(chosen, style).format(value / 1000 ** power);
}

export function date(value) {
  const style = { dateStyle: "medium", timeStyle: "short" };
  return value ? new Intl.DateTimeFormat(chosen, style).format(new Date(value)) : "";
}

export function percent(value) {
  return new Intl.NumberFormat(chosen, { style: "percent" }).format(value);
}
