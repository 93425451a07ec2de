-- Each cell with text below the header of a table, with the name of its column and its place.
-- document_id: Source name and path below the source's root: POSIX separators, NFC.
-- page_number: Position of the page, sheet or slide in its file, from 1.
-- block_id: The table: `page_id.block_index` with the prefix `b`, as in `specs/a.xlsx#1.b0`.
-- row_number: Row within the table, from 1, its header rows counted; on a sheet it is no row of the sheet, see `sheet_row`.
-- sheet_row: Row of the sheet on which the row of the table begins; null outside spreadsheets.
-- column_number: Column within the table, from 1; merged columns of a sheet may be one.
-- column_name: Texts of the header above the cell, with ` > ` between rows; empty where it has none, as in title blocks.
-- value: Text of the cell, as displayed.
-- row_cell_range: Cells of the sheet that the whole row covers, as in `A5:M5`; null outside spreadsheets.
WITH tables AS (
    SELECT
        *,
        list_transform(
            range(1, len(rows[1].cells) + 1),
            lambda place: list_filter(
                list_transform(rows[1:header_row_count], lambda line: trim(regexp_replace(line.cells[place], '\s+', ' ', 'g'))),
                lambda name: name <> ''
            )
        ) AS headers
    FROM blocks
    WHERE kind = 'table' AND len(rows) > header_row_count
),
body AS (
    SELECT *, unnest(range(header_row_count + 1, len(rows) + 1)) AS row_number
    FROM tables
),
cells AS (
    SELECT *, unnest(range(1, len(rows[row_number].cells) + 1)) AS column_number
    FROM body
)
SELECT
    c.document_id,
    c.page_number,
    p.page_name,
    c.block_id,
    c.section,
    c.row_number,
    try_cast(regexp_extract(c.rows[c.row_number].cell_range, '[0-9]+') AS INTEGER) AS sheet_row,
    c.column_number,
    array_to_string(
        list_filter(c.headers[c.column_number], lambda name, place: place = 1 OR name <> c.headers[c.column_number][place - 1]),
        ' > '
    ) AS column_name,
    c.rows[c.row_number].cells[c.column_number] AS value,
    c.rows[c.row_number].cell_range AS row_cell_range
FROM cells AS c
JOIN pages AS p USING (page_id)
WHERE c.rows[c.row_number].cells[c.column_number] <> ''
ORDER BY c.document_id, c.page_number, c.block_id, c.row_number, c.column_number;
