"""Outlook messages built in memory: a compound file of short streams, as [MS-CFB] and [MS-OXMSG] lay it out."""

import struct

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SECTOR, MINI = 512, 64
FREE, END, FAT_SECTOR, NONE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF
Tree = dict[str, "bytes | Tree"]


def compound_file(tree: Tree) -> bytes:
    """A compound file; its streams must be shorter than 4,096 bytes each, and fit into some 50,000 bytes together."""
    entries: list[tuple[str, int, int, int, int, int]] = []  # name, kind, right, child, start, size
    mini, mini_fat = bytearray(), list[int]()

    def add(children: Tree) -> int:
        """Add the entries of a storage, each linked to the next at its right; the number of the first."""
        names = sorted(children, key=lambda name: (len(name), name.upper()))
        first = NONE
        for name in reversed(names):
            child = children[name]
            if isinstance(child, bytes):
                start, count = len(mini_fat), max(1, -(-len(child) // MINI))
                mini.extend(child.ljust(count * MINI, b"\0"))
                mini_fat.extend([*range(start + 1, start + count), END])
                entries.append((name, 2, first, NONE, start, len(child)))
            else:
                below = add(child)
                entries.append((name, 1, first, below, 0, 0))
            first = len(entries)
        return first

    top = add(tree)
    while len(mini) % SECTOR:
        mini.extend(bytes(MINI))
    directory = _entry("Root Entry", 5, NONE, top, 0, len(mini)) + b"".join(_entry(*entry) for entry in entries)
    directory = directory.ljust(-(-len(directory) // SECTOR) * SECTOR, b"\0")
    table = struct.pack(f"<{len(mini_fat)}I", *mini_fat)
    table = table.ljust(-(-len(table) // SECTOR) * SECTOR, b"\xff")
    parts = [bytes(mini), directory, table]
    starts, fat = [], list[int]()
    for part in parts:
        count = len(part) // SECTOR
        starts.append(len(fat))
        fat.extend([*range(len(fat) + 1, len(fat) + count), END])
    fat.append(FAT_SECTOR)
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIII",
        OLE, bytes(16), 0x3E, 3, 0xFFFE, 9, 6,
        0, 1, starts[1], 0, 4096, starts[2], len(table) // SECTOR, END, 0,
    )  # fmt: skip
    header += struct.pack("<109I", len(fat) - 1, *[FREE] * 108)
    fat_bytes = struct.pack(f"<{len(fat)}I", *fat).ljust(SECTOR, b"\xff")
    return header + b"".join(parts) + fat_bytes


def ole_with(*names: str) -> bytes:
    """A compound file's header followed by directory entries, as far as detection looks at them."""
    data = OLE + bytes(SECTOR - len(OLE))
    for name in names:
        encoded = name.encode("utf-16-le") + b"\0\0"
        data += encoded.ljust(64, b"\0") + len(encoded).to_bytes(2, "little") + bytes(62)
    return data


def _entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    encoded = name.encode("utf-16-le") + b"\0\0"
    head = encoded.ljust(64, b"\0") + struct.pack("<HBBIII", len(encoded), kind, 1, NONE, right, child)
    return head + bytes(36) + struct.pack("<IQ", start, size)


def outlook_message(subject: str, body: str, sender: str, attachment: str, code_page: str = "") -> bytes:
    """A message with one attached file, its texts in Unicode or in a code page that it does not state."""
    texts = {0x0037: subject, 0x1000: body, 0x0C1A: sender, 0x0C1F: "yamada@example.jp"}
    recipient = {0x3001: "佐藤", 0x39FE: "sato@example.jp"}
    attached: Tree = {
        **_streams(bytes(8), {0x3707: attachment}, code_page),
        "__substg1.0_37010102": b"never opened",
    }
    return compound_file(
        {
            **_streams(struct.pack("<8xIIII8x", 1, 1, 1, 1), texts, code_page),
            "__nameid_version1.0": {},
            "__attach_version1.0_#00000000": attached,
            "__recip_version1.0_#00000000": _streams(bytes(8), recipient, code_page),
        }
    )


def embedding_message(subject: str, body: str, inner_subject: str, inner_body: str) -> bytes:
    """A message with another one attached to it."""
    inner = _streams(struct.pack("<8xIIII", 0, 0, 0, 0), {0x0037: inner_subject, 0x1000: inner_body})
    method = struct.pack("<HHIII", 0x0003, 0x3705, 6, 5, 0)
    attached: Tree = {"__properties_version1.0": bytes(8) + method, "__substg1.0_3701000D": inner}
    return compound_file(
        {
            **_streams(struct.pack("<8xIIII8x", 0, 1, 0, 1), {0x0037: subject, 0x1000: body}),
            "__nameid_version1.0": {},
            "__attach_version1.0_#00000000": attached,
        }
    )


def rich_text_message(subject: str, packed: bytes) -> bytes:
    """A message whose body is compressed Rich Text alone."""
    return compound_file(
        {
            **_streams(struct.pack("<8xIIII8x", 0, 0, 0, 0), {0x0037: subject}),
            "__nameid_version1.0": {},
            "__substg1.0_10090102": packed,
        }
    )


def _streams(header: bytes, texts: dict[int, str], code_page: str = "") -> Tree:
    """The streams of text properties, and the one that lists them."""
    kind, encoding = (0x001E, code_page) if code_page else (0x001F, "utf-16-le")
    listed = b"".join(
        struct.pack("<HHIII", kind, number, 6, len(text.encode(encoding)) + 2, 0)
        for number, text in sorted(texts.items())
    )
    found: Tree = {f"__substg1.0_{number:04X}{kind:04X}": text.encode(encoding) for number, text in texts.items()}
    return {"__properties_version1.0": header + listed, **found}
