"""PowerPoint presentations (pptx): a page for each slide, its shapes in reading order, tables, speaker notes, comments.

Shapes that connectors join are a diagram. Pictures but for their alternative texts, and text that stands only on
layouts and masters, are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from operator import itemgetter

from lxml import etree

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind, PageRole
from rag_assets.contracts.content import Block, Box, Failure, Page, ParsedDocument, Row
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.archive import Archive, Relation, alternative, local_name
from rag_assets.parsing.drawings.diagrams import find_diagrams
from rag_assets.parsing.drawings.drawings import LINES, ShapeKind, box_of, group_frame, property_of, read_shapes
from rag_assets.parsing.drawings.graphics import diagram_references, graphic_blocks
from rag_assets.parsing.flow import (
    ONLY_PICTURES,
    around,
    clean,
    fill_grid,
    join_letters,
    link_suffix,
    picture_block,
    rows_above_figures,
    sensible_title,
    table_block,
)
from rag_assets.parsing.geometry import Frame
from rag_assets.parsing.limits import current_limits, depth_limit
from rag_assets.parsing.markup.mathematics import formula_text
from rag_assets.parsing.office.slide_layout import (
    RUNNING_PLACEHOLDERS,
    TITLE_PLACEHOLDERS,
    SlideShape,
    find_lanes,
    in_reading_order,
    with_bullets,
    with_title,
)
from rag_assets.parsing.office.slide_tables import cells_of_row, columns_and_rows, slide_header_rows
from rag_assets.parsing.office.styles import integer
from rag_assets.parsing.roles import is_agenda, is_cover
from rag_assets.text.cells import Area

_EMU_PER_POINT = 12700
_IN_POINTS = Frame(1 / _EMU_PER_POINT, 1 / _EMU_PER_POINT)
_NO_TARGETS: Mapping[str, str] = {}
_ROWS_APART = 100
_FOOT = 0.88  # of the height of a slide, from which its foot begins
_LEAST_FOOTERS, _FOOTER_SHARE = 3, 0.5  # slides, and share of all
_DIGITS = re.compile(r"\d+")


def parse_pptx(data: bytes, maximum_entries: int, maximum_bytes: int, maximum_slides: int) -> ParsedDocument:
    """Parse a presentation.

    Args:
        data: The bytes of the file.
        maximum_entries: Entries of the archive.
        maximum_bytes: Expanded size of the archive in bytes.
        maximum_slides: Slides of the presentation.

    Returns:
        A page for each slide, in the order shown. A slide that cannot be read is an empty page and a failure; groups
        that are nested too deep, and a diagram that is damaged, are failures of their slide.

    Raises:
        ParseError: MALFORMED, TOO_LARGE or ENCRYPTED, from the archive; TOO_LARGE where it has too many slides.
    """
    archive = Archive(data, maximum_entries, maximum_bytes)
    main = archive.main_part("ppt/presentation.xml")
    presentation = archive.tree(main)
    relations = archive.relations(main)
    slide_size = presentation.find("{*}sldSz")
    width, height = (integer(slide_size, 0, name) / _EMU_PER_POINT for name in ("cx", "cy"))
    size = None if slide_size is None else (width, height)
    references = (_reference(slide) for slide in presentation.iterfind("{*}sldIdLst/{*}sldId"))
    parts = [relations[reference].target if reference in relations else "" for reference in references]
    if len(parts) > maximum_slides:
        raise ParseError(FailureCause.TOO_LARGE, f"{len(parts)} slides, limit {maximum_slides}")
    pages: list[Page] = []
    failures: list[Failure] = []
    for number, part in enumerate(parts, start=1):
        try:
            pages.append(_read_slide(archive, part, number, size, failures))
        except ParseError as error:
            failures.append(Failure(error.cause, f"slide {number}: {error}", number))
            pages.append(Page(number, PageKind.SLIDE, (), size=size))
    title = sensible_title(archive.stated_title())
    return ParsedDocument(DocumentFormat.PPTX.value, title, tuple(_with_footers(pages)), tuple(failures))


def _with_footers(pages: Sequence[Page]) -> Iterator[Page]:
    """The slides; what stands at one place at their foot on most of them, but for a number that counts them, is running
    text.
    """
    keys = [[_footers(block, page) for block in page.blocks] for page in pages]
    counts = Counter(key for page_keys in keys for key in frozenset[tuple[str, Box]]().union(*page_keys))
    least = max(_LEAST_FOOTERS, _FOOTER_SHARE * len(pages))
    for page, page_keys in zip(pages, keys, strict=True):
        blocks = (
            replace(block, kind=BlockKind.HEADER) if any(counts[key] >= least for key in block_keys) else block
            for block, block_keys in zip(page.blocks, page_keys, strict=True)
        )
        yield replace(page, blocks=tuple(blocks))


def _footers(block: Block, page: Page) -> frozenset[tuple[str, Box]]:
    """Text and place of a paragraph at the foot of a slide: as it is, and with each of its numbers, which may count the
    slides, as the difference to that of the slide; none of all others.
    """
    if block.kind is not BlockKind.PARAGRAPH or not block.box or not page.size or "\n" in block.text:
        return frozenset()
    if block.box[1] < _FOOT * page.size[1]:
        return frozenset()
    texts = {block.text}
    for match in _DIGITS.finditer(block.text):
        texts.add(f"{block.text[: match.start()]}#{int(match[0]) - page.number}{block.text[match.end() :]}")
    return frozenset((text, block.box) for text in texts)


def _reference(element: etree._Element) -> str:
    """Id of the relationship that an element names: the namespaced `id`, as the plain one is a number of its own."""
    return next((str(value) for key, value in element.attrib.items() if str(key).endswith("}id")), "")


def _read_slide(
    archive: Archive, part: str, number: int, size: tuple[float, float] | None, failures: list[Failure]
) -> Page:
    """Read a slide; what has to be left out is added to the failures."""
    slide = archive.tree(part)
    relations = archive.relations(part)
    tree = slide.find("{*}cSld/{*}spTree")
    drawn_shapes = list(_shapes(tree, _IN_POINTS, _layout_boxes(archive, relations), 0))
    shapes = in_reading_order(with_title(with_bullets(drawn_shapes), size[1] if size else 0.0))
    if tree is not None and (deep := _deepest_group(tree)) > current_limits().nesting_depth:
        message = f"slide {number}: groups nested {deep} deep; what lies deeper than {depth_limit()} is left out"
        failures.append(Failure(FailureCause.TOO_LARGE, message, number))
    titles = (_text_of(shape) for shape in shapes if shape.placeholder in TITLE_PLACEHOLDERS)
    title = next(filter(None, titles), "")
    section = (title.replace("\n", " "),) if title else ()
    targets = archive.external_targets(part)
    blocks: list[Block] = []
    blocks_by_element: dict[etree._Element, Block | None] = {}
    beside: list[Block] = []
    for members, diagram in _diagrams(archive, relations, tree, shapes):
        block = replace(diagram, section=section)
        blocks_by_element.update({shape.element: None for shape in members})
        if members:
            blocks_by_element[members[0].element] = block
        else:
            beside.append(block)
    for shape in shapes:
        if shape.element in blocks_by_element:
            blocks.extend(filter(None, [blocks_by_element[shape.element]]))
            continue
        blocks.extend(_shape_blocks(shape, section, targets))
        for reference in diagram_references(shape.element):
            try:
                part_of_graphic = relations[reference].target if reference in relations else ""
                blocks.extend(graphic_blocks(archive, part_of_graphic, section, shape.box))
            except ParseError as error:
                failures.append(Failure(error.cause, f"slide {number}, diagram: {error}", number))
    blocks.extend(beside)
    blocks.extend(Block(BlockKind.NOTE, text, section) for text in _notes(archive, relations))
    if any(local_name(shape.element) == "pic" for shape in shapes) and all(
        block.kind is BlockKind.HEADER for block in blocks
    ):
        failures.append(Failure(FailureCause.NO_TEXT, f"slide {number}: {ONLY_PICTURES}", number))
    role = PageRole.CONTENTS if is_agenda(blocks) else None
    if number == 1 and any(shape.placeholder == "ctrTitle" for shape in shapes) and is_cover(blocks):
        role = PageRole.COVER
    is_hidden = slide.get("show") in ("0", "false")
    return Page(number, PageKind.SLIDE, tuple(blocks), hidden=is_hidden, size=size, role=role)


def _shapes(
    tree: etree._Element | None, frame: Frame, boxes: dict[tuple[str, str], Box], depth: int
) -> Iterator[SlideShape]:
    """Shapes of a tree, those in groups included, with their places on the slide."""
    if tree is None or depth > current_limits().nesting_depth:
        return
    for child in tree:
        match local_name(child):
            case "sp" | "graphicFrame" | "cxnSp" | "pic":
                placeholder = child.find("*/{*}nvPr/{*}ph")
                kind = None if placeholder is None else placeholder.get("type", "body")
                box = box_of(child, frame)
                if box is None and placeholder is not None:
                    box = boxes.get(("idx", placeholder.get("idx", ""))) or boxes.get(("type", kind or ""))
                yield SlideShape(child, kind, box)
            case "grpSp":
                yield from _shapes(child, group_frame(child, frame), boxes, depth + 1)
            case "AlternateContent":
                yield from _shapes(alternative(child), frame, boxes, depth + 1)


def _deepest_group(tree: etree._Element) -> int:
    """Levels of groups and alternatives below a tree, as `_shapes` counts them."""
    levels: dict[etree._Element, int] = {}
    for element in tree.iter("{*}grpSp", "{*}AlternateContent"):
        above = next((parent for parent in element.iterancestors("{*}grpSp", "{*}AlternateContent")), None)
        levels[element] = 1 + (0 if above is None else levels.get(above, 0))
    return max(levels.values(), default=0)


def _layout_boxes(archive: Archive, relations: dict[str, Relation]) -> dict[tuple[str, str], Box]:
    """Places of the placeholders of the layout, by index and by type, then of its master, by type."""
    boxes: dict[tuple[str, str], Box] = {}
    for kind in ("slideLayout", "slideMaster"):
        part = next((relation.target for relation in relations.values() if relation.kind == kind), "")
        if not archive.has(part):
            break
        try:
            tree = archive.tree(part).find("{*}cSld/{*}spTree")
            relations = archive.relations(part)
        except ParseError:
            break
        for shape in _shapes(tree, _IN_POINTS, {}, 0):
            placeholder = shape.element.find("{*}nvSpPr/{*}nvPr/{*}ph")
            if placeholder is not None and shape.box is not None:
                if kind == "slideLayout":
                    boxes.setdefault(("idx", placeholder.get("idx", "")), shape.box)
                boxes.setdefault(("type", placeholder.get("type", "body")), shape.box)
    return boxes


def _diagrams(
    archive: Archive, relations: dict[str, Relation], tree: etree._Element | None, shapes: Sequence[SlideShape]
) -> Iterator[tuple[list[SlideShape], Block]]:
    """Diagrams of the shapes that connectors join.

    Yields:
        The shapes that a diagram takes the place of, in reading order, and the diagram; none of placeholders, tables
        and pictures, which are read beside it.
    """
    if tree is None or not any(geometry.get("prst", "").startswith(LINES) for geometry in tree.iter("{*}prstGeom")):
        return
    drawing = read_shapes(archive, relations, tree)
    order = {property_of(shape.element, "id"): place for place, shape in enumerate(shapes)}
    lanes = find_lanes(shapes)
    texts: dict[str, str] = {}
    drawn_shapes = []
    for shape in drawing.shapes if drawing.connectors else ():
        place = order.get(shape.identity, len(shapes))
        element = shapes[place].element if place < len(shapes) else None
        if element is None or element not in lanes.frames:
            text = "" if element is None else _text_of(shapes[place]).replace("\n", " ")
            lane = lanes.names.get(element) if element is not None and shape.kind is ShapeKind.NODE else None
            texts[shape.identity] = f"[{lane}] {text}" if text and lane else text
            # Rows so far from each other that connectors alone make a diagram, in reading order.
            area = Area(place * _ROWS_APART, 0, place * _ROWS_APART, 0)
            drawn_shapes.append(replace(shape, area=area, text=texts[shape.identity] or shape.text))
    for diagram in find_diagrams(replace(drawing, shapes=tuple(drawn_shapes)), {}):
        members = (drawn_shapes[index].identity for index in (*diagram.members, *diagram.labels))
        joined_shapes = [shapes[place] for place in sorted({order[member] for member in members if member in order})]
        taken_shapes = [
            shape for shape in joined_shapes if shape.placeholder is None and local_name(shape.element) == "sp"
        ]
        on_lines = {drawn_shapes[index].identity for index in diagram.labels}
        identities = (property_of(shape.element, "id") for shape in taken_shapes)
        own_texts = [texts[identity] for identity in identities if identity not in on_lines and texts[identity]]
        if diagram.edges:
            boxes = [shape.box for shape in joined_shapes if shape.box]
            lines = (*own_texts, *diagram.edges)
            yield taken_shapes, Block(BlockKind.DIAGRAM, "\n".join(lines), box=around(boxes) if boxes else None)


def _shape_blocks(shape: SlideShape, section: tuple[str, ...], targets: Mapping[str, str]) -> Iterator[Block]:
    """Blocks of a shape with its links."""
    element, box = shape.element, shape.box
    target = _link_target(element.find("*/{*}cNvPr"), targets)
    if local_name(element) == "pic":
        properties = element.find("{*}nvPicPr/{*}cNvPr")
        description = "" if properties is None else properties.get("descr") or properties.get("title") or ""
        if (caption := picture_block(description, section, box=box, target=target)) is not None:
            yield caption
        return
    table = element.find(".//{*}tbl")
    if table is not None:
        cells = map(cells_of_row, table.iterfind("{*}tr"))
        placed_cells = [[(_text(cell, targets), *columns_and_rows(cell)) for cell in row] for row in cells]
        if rows := [Row(cells) for cells in fill_grid(placed_cells)]:
            header_rows = max(slide_header_rows(table, placed_cells), rows_above_figures([row.cells for row in rows]))
            yield table_block(rows, min(header_rows, len(rows) - 1), section, box=box)
        return
    if shape.placeholder in TITLE_PLACEHOLDERS | RUNNING_PLACEHOLDERS:
        if text := _text_of(shape, targets):
            heading = shape.placeholder in TITLE_PLACEHOLDERS
            yield Block(BlockKind.HEADING if heading else BlockKind.HEADER, text, () if heading else section, box=box)
        return
    if shape.placeholder is None:
        if text := _text_of(shape, targets):
            yield Block(BlockKind.PARAGRAPH, text + link_suffix(text, target), section, box=box)
        return
    kind = BlockKind.PARAGRAPH if shape.placeholder == "subTitle" else BlockKind.LIST_ITEM
    for paragraph in element.iterfind("{*}txBody/{*}p"):
        if text := _paragraph_text(paragraph, targets):
            yield Block(kind, text, section, box=box)


def _notes(archive: Archive, relations: dict[str, Relation]) -> Iterator[str]:
    """Speaker notes, then comments."""
    for relation in relations.values():
        if relation.kind == "notesSlide" and archive.has(relation.target):
            targets = archive.external_targets(relation.target)
            for shape in archive.tree(relation.target).iter("{*}sp"):
                placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
                if placeholder is not None and placeholder.get("type") == "body" and (text := _text(shape, targets)):
                    yield text
        elif relation.kind in ("comments", "comment") and archive.has(relation.target):
            for comment in archive.tree(relation.target).iter("{*}text", "{*}txBody"):
                if text := clean("".join(str(part) for part in comment.itertext())):
                    yield text


def _text_of(shape: SlideShape, targets: Mapping[str, str] = _NO_TARGETS) -> str:
    """Text of a shape with its bullets."""
    paragraphs = zip_longest(shape.bullets, _paragraphs(shape.element, targets), fillvalue="")
    return "\n".join(" ".join(filter(None, pair)) for pair in paragraphs)


def _text(element: etree._Element, targets: Mapping[str, str] = _NO_TARGETS) -> str:
    return "\n".join(_paragraphs(element, targets))


def _paragraphs(element: etree._Element, targets: Mapping[str, str]) -> Iterator[str]:
    """Texts of the paragraphs that have any."""
    return filter(None, (_paragraph_text(paragraph, targets) for paragraph in element.iter("{*}p")))


def _paragraph_text(paragraph: etree._Element, targets: Mapping[str, str]) -> str:
    """Text of a paragraph; the target of a link stands behind the last of the runs that show it."""
    parts = [(_link_target(run.find("{*}rPr"), targets), text) for run, text in _runs(paragraph)]
    text: list[str] = []
    for target, runs in groupby(parts, key=itemgetter(0)):
        run_text = "".join(run for _, run in runs)
        text += [run_text, link_suffix(run_text, target)]
    return join_letters(clean("".join(text).replace("~~~~", "")))


def _runs(paragraph: etree._Element) -> Iterator[tuple[etree._Element, str]]:
    """Runs, fields, breaks and formulas of a paragraph with their texts."""
    for child in paragraph:
        match local_name(child):
            case "r" | "fld":
                text_parts = (part for part in child if local_name(part) in {"t", "tab"})
                text = "".join("\t" if local_name(part) == "tab" else part.text or "" for part in text_parts)
                properties = child.find("{*}rPr")
                strike = "noStrike" if properties is None else properties.get("strike", "noStrike")
                yield child, text if strike == "noStrike" or not text.strip() else f"~~{text}~~"
            case "br":
                yield child, "\n"
            case "AlternateContent":
                yield from _runs(alternative(child))
            case "m":
                yield child, " ".join(map(formula_text, child))


def _link_target(properties: etree._Element | None, targets: Mapping[str, str]) -> str:
    """Where the link leads that the properties of a run or of a shape name; empty where there is none."""
    link = None if properties is None else properties.find("{*}hlinkClick")
    return "" if link is None else targets.get(_reference(link), "")
