-- Each cell with text below the header of a table, with the name of its column and its place.
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
