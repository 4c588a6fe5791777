"""Ends with 1 unless a file has the given SHA-256."""

import hashlib
import sys

with open(sys.argv[1], "rb") as data:
    found = hashlib.file_digest(data, "sha256").hexdigest()
if found != sys.argv[2]:
    sys.exit(f"{sys.argv[1]}: SHA-256 {found}, expected {sys.argv[2]}")
