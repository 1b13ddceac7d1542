"""Names of kernels and ranges without what changes from run to run, so that they match across captures."""

from __future__ import annotations

import re

HOLE = "#"
"""stands where something volatile was"""

_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{4,}")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_HASH = re.compile(r"(?<![0-9A-Za-z])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?![0-9A-Za-z])")
_LONG_NUMBER = re.compile(r"(?<![\w.])\d{6,}(?![\w.])")
_COUNTED = re.compile(
    r"\b(op_id|seq|seq_id|id|uid|rid|pid|tid|req|request|request_id|step|iter|iteration|epoch|batch_id|number)"
    r"(\s*[=:#]\s*|\s+)-?\d+",
    re.IGNORECASE,
)
_LAST_NUMBER = re.compile(r"(?<=[\s_#:=-])-?\d+$")
_UNKNOWN = re.compile(r"^\[unknown \d+\]$")
_GENERATED = re.compile(r"^(triton_\w+?)_\d+(d\d\w*)?$")


def fold_range(name: str) -> str:
    """Return a range's name with ids, addresses, sequence numbers and the number at its end replaced by ``#``.

    ``forward 12`` → ``forward #``; ``aten::mm, seq = 4, op_id = 9`` → ``aten::mm, seq = #, op_id = #``; numbers that
    are part of a name stay: ``encoder.block.14``, ``sizes = [[8, 128]]``.
    """
    folded = _COUNTED.sub(rf"\1\2{HOLE}", _fold_ids(name))
    return _LAST_NUMBER.sub(HOLE, folded)


def fold_kernel(name: str) -> str:
    """Return a kernel's name with addresses, hashes and the running numbers of generated kernels replaced by ``#``.

    Tile sizes and template arguments stay, since they name another kernel: ``nvjet_tst_192x192_64x4``.
    """
    return _GENERATED.sub(rf"\1_{HOLE}", _UNKNOWN.sub(f"[unknown {HOLE}]", _fold_ids(name)))


def pattern_of(folded: str) -> str:
    """Return a regular expression for all range names that fold to this one."""
    return f"^{'.+'.join(re.escape(part) for part in folded.split(HOLE))}$"


def _fold_ids(name: str) -> str:
    for volatile in (_ADDRESS, _UUID, _HASH, _LONG_NUMBER):
        name = volatile.sub(HOLE, name)
    return name
