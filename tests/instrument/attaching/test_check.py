"""What the source of a module tells about its functions, without an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from instrument.attaching.check import Finding, check_wrap
from instrument.attaching.source_outline import NoSuchModuleError, find_source, outline
from instrument.attaching.wrap_spec import parse_wrap

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path) -> list[str]:
    """A package that must not be imported: it would fail."""
    (tmp_path / "pkg/sub").mkdir(parents=True)
    (tmp_path / "space/deep").mkdir(parents=True)
    (tmp_path / "pkg/__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "pkg/sub/__init__.py").write_text("from .other import *\ndef own(layer): pass\n")
    (tmp_path / "space/deep/mod.py").write_text("def run(batch): pass\n")
    (tmp_path / "pkg/broken.py").write_text("def (:\n")
    (tmp_path / "pkg/lazy.py").write_text("def __getattr__(name): return len\n")
    (tmp_path / "pkg/mod.py").write_text(
        "from elsewhere import Outside, helper\n"
        "class Base:\n"
        "    def load(self, layer_id, /, size, *rest, io=1, **more): pass\n"
        "class Pool(Base, object):\n"
        "    class Part:\n"
        "        async def fetch(self, key): pass\n"
        "    alias = Base.load\n"
        "class Foreign(Outside):\n"
        "    def fetch(self): pass\n"
        "class Grandchild(Foreign): pass\n"
        "try:\n"
        "    from fast import copy\n"
        "except ImportError:\n"
        "    def copy(source): pass\n"
        "if helper:\n"
        "    def late(batch): pass\n"
    )
    return [str(tmp_path)]


@pytest.mark.parametrize(
    "spec",
    [
        "pkg.mod:Base.load={self.x} {layer_id} {size} {rest[0]} {io} {more}",
        "pkg.mod:Pool.load=load layer {layer_id}",
        "pkg.mod:Pool.Part.fetch=fetch {key}",
        "pkg.mod:copy=copy {source}",
        "pkg.mod:late=late {batch}",
        "space.deep.mod:run=run {batch}",
    ],
)
def test_what_the_source_has_is_found_without_an_import(package: list[str], spec: str) -> None:
    assert check_wrap(parse_wrap(spec), package) == Finding()


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("pkg.mod:Pool.laod=x", "pkg.mod has no Pool.laod; near matches: Base.load"),
        ("pkg.mod:Base=x", "pkg.mod:Base is a class, so name one of its methods: Base.load"),
        (
            "pkg.mod:Base.load={layer}",
            "pkg.mod:Base.load has no parameter 'layer' (it has self, layer_id, size, rest, io, more)",
        ),
        ("pkg.mod:zzz=x", "pkg.mod has no zzz; it has Base.load, Pool.Part.fetch, Foreign.fetch, copy, late"),
        ("pkg.mood:f=x", "there is no module pkg.mood; near matches: mod"),
        ("space.deep.other:f=x", "there is no module space.deep.other"),
        ("no_such_package_at_all:f=x", "there is no module no_such_package_at_all"),
    ],
)
def test_what_the_source_lacks_is_an_error(package: list[str], spec: str, error: str) -> None:
    assert check_wrap(parse_wrap(spec), package) == Finding(error=error)


@pytest.mark.parametrize(
    "spec",
    [
        "pkg.mod:helper=x",
        "pkg.mod:Outside.run=x",
        "pkg.mod:Foreign.run=x",
        "pkg.mod:Grandchild.run=x",
        "pkg.mod:Pool.alias=x",
        "pkg.sub:anything=x",
        "pkg.lazy:anything=x",
        "pkg.broken:f=x",
        "space.deep:f=x",
    ],
)
def test_what_only_an_import_can_tell_is_a_note(package: list[str], spec: str) -> None:
    finding = check_wrap(parse_wrap(spec), package)
    assert finding.error is None
    assert finding.note


def test_compiled_and_built_in_modules_have_no_source() -> None:
    assert find_source("sys") is None
    assert find_source("json.decoder") is not None
    with pytest.raises(NoSuchModuleError):
        find_source("json.no_such_part")


def test_a_module_that_another_makes_is_a_note() -> None:
    found = check_wrap(parse_wrap("os.path:join=join"))
    assert (found.error, found.note) == (None, "os.path is made by another module, so join is not checked")


def test_a_name_of_a_class_alone_is_listed_as_python_keeps_it() -> None:
    found = outline("class _Pool:\n    def __fill(self): pass\n    def __len__(self): pass\ndef __free(): pass\n")
    assert list(found.functions) == ["_Pool._Pool__fill", "_Pool.__len__", "__free"]


def test_an_outline_lists_functions_classes_and_what_else_is_bound() -> None:
    found = outline("import a.b\nfrom c import d as e\nx, y = 1, 2\nz: int = 3\nclass K(a.B): pass\ndef f(): pass\n")
    assert found.functions == {"f": ()}
    assert found.classes == {"K": ("a.B",)}
    assert found.others == {"a", "e", "x", "y", "z"}
    assert found.complete
