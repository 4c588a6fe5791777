"""Appends the largest member of the one archive in a folder to a file, and removes the archive."""

import pathlib
import sys
import zipfile

folder, out = pathlib.Path(sys.argv[1]), sys.argv[2]
(archive,) = folder.glob("*.whl")
with zipfile.ZipFile(archive) as members, open(out, "ab") as target:
    largest = max(members.infolist(), key=lambda member: member.file_size)
    with members.open(largest) as data:
        while block := data.read(1 << 22):
            target.write(block)
archive.unlink()
