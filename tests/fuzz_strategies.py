"""What the fuzzer draws from: tables and columns, values and names that have hurt programs before."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fuzz_mutations import Cut, Drop, Fill, Flip, Mark, Meta, Nest, RawText, Repeat, Reverse, SetCell, Shift
from fuzz_outcomes import COMMANDS
from fuzz_scenes import BASES
from hypothesis import strategies as st
from layouts import LAYOUTS

from traceview.nsys import schema

CANARY = "fuzz-canary"
"""Where this turns up as an element or an attribute, a name of a trace became markup."""

_NASTY = (
    "", " ", "\0", "a\0b", "\n", "\r\n::error::x", "\t", "\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\x1bP1q",
    "\x7f", "\u202eevil", "\u200b", "\u2066x\u2069", "\ufeff", "\u2028", "=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1",
    "\r=1", "|", "`",
    "``` \n", "[a](javascript:fuzz)", f"<{CANARY}>", f'"><{CANARY} x="', f"' {CANARY}='1", f"</script><{CANARY}>",
    f"<!--<{CANARY}>-->", f"]]><{CANARY}>", f"&lt;{CANARY}&gt;", "%s %n", "{0}", "$(x)", "\\", "../../x", "é" * 300,
    "x" * 20_000, "9" * 5_000, "٣", "²", "-0", "1e999", "nan", "[/red]", "[bold]", "(" * 200, "THP" + "_" * 3_000,
    "a::" * 3_000, "<" * 3_000, "{lambda" * 500, "\U0001f600" * 50,
)  # fmt: skip
_ROLES = (
    "", "forward 0", "forward -1", "forward ", "load layer 1", "compute layer 0", "compute layer ", "load layer ",
    "storage read", "stage", "cudaMemcpyAsync", "cudaStreamSynchronize", "at::native::", "THPVariable_", "transfer_kv",
    "facts ", "layer 0", "cudaGraphLaunch", "cudaMalloc",
)  # fmt: skip
_NUMBERS = (
    0, 1, -1, 2, 7, 13, 59, 60, 75, 97, 127, 128, 255, 256, 4711, 1 << 15, (1 << 31) - 1, 1 << 31, -(1 << 31),
    (1 << 32) - 1,
    1 << 32, 1 << 44, 1 << 53, (1 << 61) - 1, 1 << 61, (1 << 61) + 1, -(1 << 61), 1 << 62, (1 << 63) - 1, -(1 << 63),
    1 - (1 << 63), 1_700_000_000_000_000_000,
)  # fmt: skip
_IMPORTANT = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
    "StringIds",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
)
_TIMED = tuple(table for table in LAYOUTS["3.28.1"].tables if LAYOUTS["3.28.1"].has(table, "end"))
_COLUMNS = {
    table: tuple(dict.fromkeys(column.name for layout in LAYOUTS.values() for column in layout.tables.get(table, ())))
    for layout in LAYOUTS.values()
    for table in layout.tables
}

names = st.builds(
    lambda role, nasty: role + nasty, st.sampled_from(_ROLES), st.sampled_from(_NASTY) | st.text(max_size=8)
)
numbers = (
    st.sampled_from(_NUMBERS) | st.integers(0, 20) | st.integers(0, 320_000) | st.integers(-(1 << 63), (1 << 63) - 1)
)
values = st.one_of(
    numbers,
    names,
    st.none(),
    st.floats(allow_nan=False),
    st.binary(max_size=8),
    st.builds(
        RawText, st.binary(max_size=8) | st.sampled_from([b"forward 1\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\0b"])
    ),
)
tables = st.sampled_from(_IMPORTANT) | st.sampled_from(tuple(_COLUMNS))
rows = st.none() | st.integers(0, 200)
places = tables.flatmap(lambda table: st.tuples(st.just(table), st.sampled_from(_COLUMNS[table])))
_READ = [
    (table, name)
    for source in vars(schema).values()
    if isinstance(source, schema.Source)
    for table in source.tables
    for field in source.fields.values()
    for name in field.columns
]
_vital = st.sampled_from([*_READ, *(("NVTX_EVENTS", column) for column in _COLUMNS["NVTX_EVENTS"])])
_leaves = st.none() | st.booleans() | numbers | st.floats() | names


_known = (
    "devices id gpu_name gpu pcie generation width numa_node host_buffers bytes pinned pages_by_node workload layers"
)
_keys = st.sampled_from((*_known.split(), "link", "nic", "pages", "iommu", "cpu_affinity", "current", "max")) | names
documents = st.recursive(_leaves, lambda one: st.lists(one, max_size=3) | st.dictionaries(_keys, one, max_size=4))
_times = st.sampled_from(["start", "end", "timestamp"])
_near = st.integers(-1, 20) | st.integers(0, 320_000)
_descriptions = st.sampled_from(["META_DATA_CAPTURE", "META_DATA_EXPORT"])
_lines = st.sampled_from(
    [
        "TRACEVIEW_SLIM:FIRST_FORWARD",
        "TRACEVIEW_SLIM:WARMUP",
        "EXPORT_SCHEMA_VERSION",
        "EXPORT_PRODUCT_VERSION",
        "X:MODE",
    ]
)
_texts = st.sampled_from([("StringIds", "value"), ("NVTX_EVENTS", "text")])
_payloads = st.sampled_from([("NVTX_EVENTS", "jsonText"), ("GENERIC_EVENTS", "data"), ("GENERIC_EVENT_TYPES", "data")])


def _set(where: st.SearchStrategy[tuple[str, str]], what: st.SearchStrategy) -> st.SearchStrategy[SetCell]:
    return st.builds(lambda place, row, value: SetCell(*place, row, value), where, rows, what)


row_changes = st.one_of(
    _set(places, values),
    _set(places, numbers),
    _set(_vital, _near),
    _set(_vital, _near),
    _set(_vital, numbers),
    _set(_texts, names),
    _set(_texts, names),
    _set(_payloads, documents.map(json.dumps)),
    st.builds(Shift, tables, _times, rows, st.integers(-400_000, 400_000)),
    st.builds(Shift, tables, _times, rows, st.integers(-400_000, 400_000) | numbers),
    st.builds(Reverse, st.sampled_from(_TIMED), rows),
    st.builds(Repeat, tables, rows, st.integers(1, 3)),
    st.builds(Drop, tables, st.integers(0, 200)),
    st.builds(Drop, tables),
    st.builds(lambda place: Drop(place[0], None, place[1]), places),
    st.builds(Mark, documents.map(lambda facts: f"facts {json.dumps(facts)}"), domain=st.integers(0, 3)),
    st.builds(Mark, names, st.sampled_from([34, 59, 60, 75]), _near, st.none() | _near, st.integers(0, 3)),
    st.builds(Meta, _descriptions, _lines, values.filter(lambda value: not isinstance(value, RawText))),
    st.builds(Nest, st.integers(1, 60), st.sampled_from(["forward 0", "load layer 1", "compute layer 0", "layer 2"])),
)
byte_changes = st.one_of(
    st.builds(Flip, st.integers(0, 1 << 20) | st.integers(0, 99), st.integers(1, 255)),
    st.builds(Cut, st.integers(0, 300), st.integers(-20, 20)),
    st.builds(Fill, st.integers(0, 300), st.sampled_from([0, 255, 13, 10, 5, 2])),
    st.builds(Fill, st.integers(0, 300), st.just(0), st.integers(0, 300)),
)


@dataclass(frozen=True)
class Example:
    """One damaged trace and what is done with it."""

    base: str
    changes: list
    command: str


examples = st.builds(
    Example,
    st.sampled_from(BASES),
    st.one_of(*[st.lists(row_changes, min_size=1, max_size=4)] * 5, st.lists(byte_changes, min_size=1, max_size=4)),
    st.sampled_from(tuple(COMMANDS)),
)
