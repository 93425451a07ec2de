-- The largest tables found inside documents, with their place and column names.
-- document_id: Source name and path below the source's root: POSIX separators, NFC.
-- page_number: Position of the page, sheet or slide in its file, from 1.
-- row_count: Rows below the header.
-- column_count: Columns.
-- header_cells: Texts of the header, with commas between.
SELECT
    b.document_id,
    b.page_number,
    p.page_name,
    b.cell_range,
    len(b.rows) - b.header_row_count AS row_count,
    len(b.rows[1].cells) AS column_count,
    array_to_string(
        list_transform(
            list_filter(flatten(list_transform(b.rows[1:b.header_row_count], lambda r: r.cells)), lambda cell: cell <> ''),
            lambda cell: trim(regexp_replace(cell, '\s+', ' ', 'g'))
        ),
        ', '
    ) AS header_cells,
    b.section
FROM blocks AS b
JOIN pages AS p USING (page_id)
WHERE b.kind = 'table' AND len(b.rows) > 0
ORDER BY row_count * column_count DESC, b.block_id
LIMIT 100;
