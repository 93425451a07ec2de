"""Markdown by way of HTML: CommonMark, tables, strikethrough, footnotes, lists of tasks and definitions, front matter.

Inline footnotes, as in `^[text]`, stay in their sentence.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, sensible_title
from rag_assets.parsing.limits import current_limits, depth_limit
from rag_assets.parsing.markup.reader import Markup, on_first_page, read_markup
from rag_assets.parsing.plain.text import decode_text, text_blocks

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"""^title:[ \t]*["']?(.+?)["']?[ \t]*$""", re.MULTILINE | re.IGNORECASE)
_INLINE_DEPTH = 20
_CONTAINERS = {"blockquote_open", "list_item_open", "bullet_list_open", "ordered_list_open", "dd_open",
               "footnote_reference_open"}  # fmt: skip


def parse_markdown(data: bytes) -> ParsedDocument:
    """Parse a Markdown file into one page; front matter becomes a note.

    A file whose lists or quotations are nested too deep is read as plain text, so that nothing is lost.

    Raises:
        ParseError: MALFORMED where the rendered text is no HTML.
    """
    text = decode_text(data)
    front = _FRONT_MATTER.match(text)
    match = _FRONT_TITLE.search(front[1]) if front else None
    notes = (Block(BlockKind.NOTE, clean(front[1])),) if front else ()
    markup = _read(text[front.end() :] if front else text, front[0].count("\n") if front else 0)
    page = Page(1, PageKind.BODY, (*notes, *markup.blocks))
    title = sensible_title(match[1] if match else markup.title)
    return ParsedDocument(DocumentFormat.MD.value, title, (page,), on_first_page(markup.failures))


def _read(text: str, lines_above: int) -> Markup:
    renderer, deepest = _renderer(), current_limits().nesting_depth
    tokens = renderer.parse(text)
    # Of a list or quotation as deep as its limit the renderer leaves out all that follows, and does not say so.
    ends = [
        token.map[0] + 1
        for token in tokens
        if token.nesting == 1 and token.level + 1 >= deepest and token.map and token.type in _CONTAINERS
    ]
    if not ends:
        return read_markup(renderer.renderer.render(tokens, renderer.options, {}))
    message = f"line {min(ends) + lines_above}: nested deeper than {depth_limit()}; the file is read as plain text"
    return Markup(tuple(text_blocks(text, Sections())), failures=(Failure(FailureCause.TOO_LARGE, message),))


def _renderer() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.tasklists import tasklists_plugin

    renderer = MarkdownIt("commonmark", {"html": True, "maxNesting": current_limits().nesting_depth})
    renderer.enable(["table", "strikethrough"]).use(deflist_plugin).use(tasklists_plugin)
    # The plugin would leave out the footnotes that nothing refers to.
    renderer.use(footnote_plugin, inline=False, move_to_end=False)
    renderer.core.ruler.before("inline", "bound_inline", _bound_inline)
    renderer.add_render_rule("footnote_ref", _note_reference)
    renderer.add_render_rule("footnote_reference_open", _note_begin)
    renderer.add_render_rule("footnote_reference_close", lambda *_: "</div>")
    return renderer


def _bound_inline(state: "StateCore") -> None:
    """Lower the depth for what stands within lines: deeper marks are text, and each open one costs as much as that."""
    state.md.options["maxNesting"] = min(state.md.options["maxNesting"], _INLINE_DEPTH)


def _note_reference(_: Any, tokens: Sequence["Token"], index: int, *_options: Any) -> str:
    label = str(tokens[index].meta["label"])
    return f'<sup><a href="#{quote(f"fn-{label}")}">[{escape(label)}]</a></sup>'


def _note_begin(_: Any, tokens: Sequence["Token"], index: int, *_options: Any) -> str:
    label = str(tokens[index].meta["label"])
    return f'<div role="doc-footnote" id="fn-{escape(label)}" aria-label="[{escape(label)}]">'
