"""The repository's own checks find what they are there to find."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def run_tool(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOLS / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small source tree with two modules that passes the layer check."""
    source = tmp_path / "src" / "traindbg"
    for module in ("base", "model"):
        (source / module).mkdir(parents=True)
    (source / "layers.txt").write_text("# comment\nbase:\nmodel: base\n")
    (source / "base" / "status.h").write_text("#pragma once\n")
    (source / "model" / "step.h").write_text('#pragma once\n#include "traindbg/base/status.h"\n')
    return tmp_path


class TestLayers:
    def test_allowed_includes_pass(self, tree: Path) -> None:
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 0, result.stdout

    def test_an_include_against_the_arrow_names_file_and_line(self, tree: Path) -> None:
        (tree / "src/traindbg/base/status.h").write_text(
            '#pragma once\n\n#include "traindbg/model/step.h"\n'
        )
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "base/status.h:3: module 'base' may not use 'model'" in result.stdout

    def test_a_module_that_the_table_lacks_is_named(self, tree: Path) -> None:
        (tree / "src/traindbg/extra").mkdir()
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "extra: no such module in layers.txt" in result.stdout

    def test_a_module_without_a_folder_is_named(self, tree: Path) -> None:
        table = tree / "src/traindbg/layers.txt"
        table.write_text(table.read_text() + "ghost: base\n")
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "module 'ghost' has no folder" in result.stdout

    def test_the_table_may_only_point_upwards(self, tree: Path) -> None:
        (tree / "src/traindbg/layers.txt").write_text("base: model\nmodel: base\n")
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "layers.txt:1: 'base' may not use 'model'" in result.stdout

    def test_a_file_that_does_not_exist_is_named(self, tree: Path) -> None:
        (tree / "src/traindbg/model/x.cc").write_text('#include "traindbg/base/gone.h"\n')
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert '"traindbg/base/gone.h" does not exist' in result.stdout

    def test_a_path_relative_to_the_file_is_refused(self, tree: Path) -> None:
        (tree / "src/traindbg/model/x.cc").write_text('#include "step.h"\n')
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "includes of ours start with traindbg/" in result.stdout

    def test_files_that_include_each_other_are_shown_as_a_circle(self, tree: Path) -> None:
        model = tree / "src/traindbg/model"
        (model / "a.h").write_text('#include "traindbg/model/b.h"\n')
        (model / "b.h").write_text('#include "traindbg/model/c.h"\n')
        (model / "c.h").write_text('#include "traindbg/model/a.h"\n')
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert (
            "traindbg/model/a.h -> traindbg/model/b.h -> traindbg/model/c.h -> traindbg/model/a.h"
            in result.stdout
        )

    def test_own_names_that_would_meet_in_one_compilation_are_named(self, tree: Path) -> None:
        base = tree / "src/traindbg/base"
        text = (
            "namespace traindbg::{0} {{\nnamespace {{\n\n"
            "constexpr int kMost = 3;\n\n{1}\n\n}}  // namespace\n}}\n"
        )
        inner = (
            "namespace base = traindbg::base;\nusing base::Status;\n"
            "int sum(int a, int b) {\n    return a + b;\n}"
        )
        (base / "a.cc").write_text(text.format("base", inner))
        (base / "b.cc").write_text(text.format("base::deep", inner))
        (tree / "src/traindbg/model/c.cc").write_text(text.format("base", inner))
        more = (
            "[[nodiscard]] int marked(int a) { return a; }\nbool operator==(A, B);\nenum : int { };"
        )
        (base / "e.cc").write_text(text.format("base::deeper", more))
        assert run_tool("check_layers.py", tree).returncode == 0
        (base / "d.cc").write_text(text.format("base", "double sum(double a) { return a; }"))
        (base / "f.cc").write_text(
            "namespace traindbg::base::deeper {\nnamespace {\nalignas(16) const int marked = 3;\n"
            "bool operator==(C, D);\nenum : int { };\n}  // namespace\n}\n"
        )
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "base/f.cc:3: 'traindbg::base::deeper::marked' is an own name of" in result.stdout
        assert "base/d.cc:4: 'traindbg::base::kMost' is an own name of" in result.stdout
        assert "base/d.cc:6: 'traindbg::base::sum' is an own name of" in result.stdout
        assert "layers: 3 violations" in result.stdout

    def test_packages_import_only_what_their_table_allows(self, tree: Path) -> None:
        hooks = tree / "python/traindbg/hooks/torch"
        for package in ("base", "steps"):
            (hooks / package).mkdir(parents=True)
        (hooks / "layers.txt").write_text("base:\nsteps: base\n")
        prefix = "traindbg.hooks.torch"
        (hooks / "base/names.py").write_text(
            f"if TYPE_CHECKING:\n    from {prefix}.steps.drivers import Drivers\n"
        )
        (hooks / "steps/drivers.py").write_text(f"from {prefix}.base import names\nimport torch\n")
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 0, result.stdout
        (hooks / "base/names.py").write_text(
            f"def names():\n    from {prefix}.steps.drivers import Drivers\n"
            f"    import {prefix}.gone.drivers\n"
        )
        (hooks / "extra").mkdir()
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 1
        assert "base/names.py:2: package 'base' may not use 'steps'" in result.stdout
        assert f"base/names.py:3: '{prefix}.gone.drivers' is of no package" in result.stdout
        assert "extra: no such module in layers.txt" in result.stdout

    def test_two_ways_to_one_header_are_no_circle(self, tree: Path) -> None:
        model = tree / "src/traindbg/model"
        (model / "a.h").write_text(
            '#include "traindbg/model/b.h"\n#include "traindbg/model/step.h"\n'
        )
        (model / "b.h").write_text('#include "traindbg/model/step.h"\n')
        result = run_tool("check_layers.py", tree)
        assert result.returncode == 0, result.stdout


class TestHeaders:
    def test_a_header_that_lacks_an_include_fails(self, tree: Path) -> None:
        (tree / "src/traindbg/model/step.h").write_text("#pragma once\nstd::string name();\n")
        result = run_tool("check_headers.py", "--root", tree)
        assert result.returncode == 1
        assert "step.h: does not compile alone" in result.stdout
        assert "1 of 2" in result.stdout

    def test_a_header_without_a_guard_fails(self, tree: Path) -> None:
        (tree / "src/traindbg/model/step.h").write_text("struct Step {};\n")
        result = run_tool("check_headers.py", "--root", tree)
        assert result.returncode == 1
        assert "step.h: does not compile alone" in result.stdout

    def test_a_public_header_that_needs_a_private_one_fails(self, tree: Path) -> None:
        public = tree / "include" / "traindbg"
        public.mkdir(parents=True)
        (public / "leaky.h").write_text('#pragma once\n#include "traindbg/base/status.h"\n')
        (public / "good.h").write_text("#pragma once\n#include <string>\nstd::string name();\n")
        result = run_tool("check_headers.py", "--root", tree)
        assert result.returncode == 1
        assert "leaky.h: does not compile alone" in result.stdout
        assert "good.h" not in result.stdout

    def test_headers_that_stand_alone_pass(self, tree: Path) -> None:
        result = run_tool("check_headers.py", "--root", tree)
        assert result.returncode == 0, result.stdout
        assert "all 2 compile alone" in result.stdout


class TestDocs:
    @pytest.fixture
    def documents(self, tmp_path: Path) -> Path:
        rules = tmp_path / "src/traindbg/rules"
        (rules / "builtin").mkdir(parents=True)
        (rules / "README.md").write_text("# rules\n")
        (rules / "builtin/dead_relu.cc").write_text("")
        (tmp_path / "docs/rules").mkdir(parents=True)
        (tmp_path / "docs/rules/dead_relu.md").write_text("# Dead ReLU\n\n## What to do\n")
        return tmp_path

    def test_links_that_resolve_pass(self, documents: Path) -> None:
        (documents / "README.md").write_text(
            "[page](docs/rules/dead_relu.md#what-to-do) [here](#end)\n"
            "[outside](https://example.org/x) `[code](nowhere.md)`\n"
            "```\n[fenced](nowhere.md)\n```\n# End\n"
        )
        result = run_tool("check_docs.py", documents)
        assert result.returncode == 0, result.stdout

    def test_a_dead_link_names_file_and_line(self, documents: Path) -> None:
        (documents / "README.md").write_text("one\n\n[page](docs/gone.md)\n")
        result = run_tool("check_docs.py", documents)
        assert result.returncode == 1
        assert "README.md:3: link to docs/gone.md, which does not exist" in result.stdout

    def test_a_dead_anchor_is_found(self, documents: Path) -> None:
        (documents / "README.md").write_text("[page](docs/rules/dead_relu.md#what-not-to-do)\n")
        result = run_tool("check_docs.py", documents)
        assert result.returncode == 1
        assert "but there is no such heading" in result.stdout

    def test_a_rule_without_page_and_a_page_without_rule_are_found(self, documents: Path) -> None:
        (documents / "src/traindbg/rules/builtin/overfit.cc").write_text("")
        (documents / "docs/rules/ghost.md").write_text("# Ghost\n")
        result = run_tool("check_docs.py", documents)
        assert result.returncode == 1
        assert "docs/rules/overfit.md: missing" in result.stdout
        assert "docs/rules/ghost.md: there is no such rule" in result.stdout

    def test_a_header_that_its_module_does_not_name_is_found(self, documents: Path) -> None:
        rules = documents / "src" / "traindbg" / "rules"
        (rules / "rule.h").write_text("// A rule.\n")
        result = run_tool("check_docs.py", documents)
        assert "src/traindbg/rules/rule.h: not named in the module's README.md" in result.stdout
        (rules / "README.md").write_text("# rules\n\n`rule.h`: a rule.\n")
        assert run_tool("check_docs.py", documents).returncode == 0

    def test_a_module_without_readme_is_found(self, documents: Path) -> None:
        (documents / "src/traindbg/base").mkdir()
        result = run_tool("check_docs.py", documents)
        assert result.returncode == 1
        assert "src/traindbg/base: no README.md" in result.stdout


PROGRAM = """#!/bin/sh
if [ "$1" = --gtest_list_tests ]; then
    {listing}
    exit 0
fi
file=$(echo "$1" | sed 's/.*xml://')
{body}
"""
REPORT = (
    "cat > $file <<EOF\n<testsuites><testsuite name='S'>"
    "<testcase name='t$GTEST_SHARD_INDEX' classname='S' status='run'/>"
    "</testsuite></testsuites>\nEOF\n"
)


def status_of(process: int) -> str:
    """One letter, as ps shows it."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


class TestCppTests:
    """Programs are told apart by their outcomes; none of these can be built in a moment."""

    def make(self, folder: Path, name: str, body: str, tests: int = 1) -> None:
        listing = "echo S.; " + f"for i in $(seq {tests}); do echo '  t'; done"
        program = folder / f"{name}_test"
        program.write_text(PROGRAM.format(listing=listing, body=body))
        program.chmod(0o755)

    def test_all_parts_of_all_programs_are_run_and_reported(self, tmp_path: Path) -> None:
        self.make(tmp_path, "base", REPORT, tests=250)
        self.make(tmp_path, "write", REPORT)
        report = tmp_path / "all.xml"
        result = run_tool("run_cpp_tests.py", tmp_path, "--report", report)
        assert result.returncode == 0, result.stdout
        assert "4 tests of 2 programs" in result.stdout
        cases = sorted(
            f"{case.get('classname')}.{case.get('name')}"
            for case in ElementTree.parse(report).getroot().iter("testcase")
        )
        assert cases == ["base.S.t0", "base.S.t1", "base.S.t2", "write.S.t0"]

    def test_one_that_fails_or_dies_fails_them_all_and_shows_what_it_printed(
        self, tmp_path: Path
    ) -> None:
        self.make(tmp_path, "base", REPORT)
        self.make(tmp_path, "read", REPORT + "echo seen by all; exit 1")
        self.make(tmp_path, "write", "echo here it was; kill -SEGV $$")
        report = tmp_path / "all.xml"
        result = run_tool("run_cpp_tests.py", tmp_path, "--report", report)
        assert result.returncode == 1
        assert "seen by all\nrun_cpp_tests: read_test, part 1 of 1, ended with 1" in result.stdout
        assert "here it was\nrun_cpp_tests: write_test, part 1 of 1, was ended by signal 11" in (
            result.stdout
        )
        failed = [
            case.get("classname")
            for case in ElementTree.parse(report).getroot().iter("testcase")
            if case.find("failure") is not None
        ]
        assert failed == ["read", "write"]
        assert run_tool("run_cpp_tests.py", tmp_path, "base").returncode == 0

    def test_a_program_that_is_not_there_or_has_no_tests_is_a_failure(self, tmp_path: Path) -> None:
        result = run_tool("run_cpp_tests.py", tmp_path, "base")
        assert result.returncode == 1
        assert f"no program {tmp_path / 'base_test'}: build it first" in result.stderr
        assert run_tool("run_cpp_tests.py", tmp_path).returncode == 1
        self.make(tmp_path, "read", REPORT)
        self.make(tmp_path, "write", REPORT, tests=0)
        result = run_tool("run_cpp_tests.py", tmp_path)
        assert result.returncode == 1
        assert "write_test, part 1 of 1, has no tests" in result.stdout

    def test_a_run_by_hand_leaves_no_test_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GTEST_FILTER", "Other.*")
        self.make(tmp_path, "base", f'[ -z "$GTEST_FILTER" ] || exit 3; {REPORT}')
        report = tmp_path / "a/b.xml"
        assert run_tool("run_cpp_tests.py", tmp_path, "--report", report).returncode == 0

    def test_what_a_part_leaves_behind_is_ended_and_not_waited_for(self, tmp_path: Path) -> None:
        self.make(tmp_path, "base", f"sleep 60 & echo $! > {tmp_path}/pid; {REPORT}")
        assert run_tool("run_cpp_tests.py", tmp_path, "base").returncode == 0
        left = int((tmp_path / "pid").read_text())
        for _ in range(100):
            if not Path(f"/proc/{left}").exists() or "Z" in status_of(left):
                break
            time.sleep(0.05)
        else:
            raise AssertionError("it still runs")


class TestSum:
    def test_adds_up_all_files_and_fails_with_a_failure(self, tmp_path: Path) -> None:
        (tmp_path / "cpp.xml").write_text(
            '<testsuite><testcase name="a" classname="base" status="run"/>'
            '<testcase name="b" classname="base" status="fail"><failure message=""/></testcase>'
            '<testcase name="c" classname="base" status="notrun"><skipped/></testcase></testsuite>'
        )
        (tmp_path / "python.xml").write_text(
            '<testsuites><testsuite><testcase classname="t" name="x"/></testsuite></testsuites>'
        )
        result = run_tool("sum_results.py", tmp_path)
        assert result.returncode == 1
        assert "failed: cpp: base.b" in result.stdout
        assert result.stdout.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"

    def test_no_result_at_all_is_a_failure(self, tmp_path: Path) -> None:
        result = run_tool("sum_results.py", tmp_path)
        assert result.returncode == 1
        assert result.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"

    def test_no_result_is_fine_where_no_test_was_asked_for(self, tmp_path: Path) -> None:
        assert run_tool("sum_results.py", "--least", 0, tmp_path).returncode == 0
        (tmp_path / "a.xml").write_text(
            '<testsuite><testcase name="a"><failure message=""/></testcase></testsuite>'
        )
        assert run_tool("sum_results.py", "--least", 0, tmp_path).returncode == 1

    def test_all_passed(self, tmp_path: Path) -> None:
        (tmp_path / "a.xml").write_text('<testsuite><testcase name="a"/></testsuite>')
        assert run_tool("sum_results.py", tmp_path).returncode == 0
