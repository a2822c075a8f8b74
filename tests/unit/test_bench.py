"""`tools/bench.py`: that it measures what it says. How fast anything is, no test asserts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.bootstrap import build_service, build_sweeper
from tests.parts import requires
from tools import bench, environment
from tools.benchmarks import growth, whole_processes
from tools.benchmarks.installations import Call, Project, Site, acquire
from tools.benchmarks.plan import FULL, QUICK, Progress
from tools.benchmarks.processes import Program, Run, compared, run, run_at_once
from tools.benchmarks.tables import Column, Table, median, ratio
from tools.benchmarks.through_apache import Count
from tools.environment import ROOT

DEADLINE_SECONDS = 60
PHP = "php-cgi, hello"


@pytest.fixture
def with_flask():
    """A .venv that has Flask; a bench would make one."""
    required = environment.digests(ROOT / "tools" / "requirements.txt", ROOT)
    requires(environment.is_installed(ROOT / ".venv", required), "a .venv that tools/test.py has made with this Python")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def site(tmp_path: Path, project: Project) -> Site:
    """A copy of the service that has granted one lock."""
    made = Site(tmp_path / "site", project, growth.CONFIG)
    made.answer(acquire("/locks/held"))
    return made


@pytest.fixture
def table() -> Table:
    made = Table("Costs", [Column("case", "one request"), Column("stored", "stored"), Column("ms", "ms", 2)])
    made.rows = [{"case": "acquire", "stored": 1_000_000, "ms": 1.2345}, {"case": "status", "ms": None}]
    made.notes = ["A note."]
    return made


@pytest.mark.parametrize(
    ("values", "middle"), [([3.0], 3.0), ([9.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 100.0], 3.0)], ids=str
)
def test_a_median_is_the_middle_and_one_outlier_does_not_move_it(values: list[float], middle: float):
    assert median(values) == middle


def test_a_ratio_is_none_where_a_side_was_not_measured():
    assert (ratio(3.0, 2.0), ratio(None, 2.0), ratio(3.0, None), ratio(3.0, 0.0)) == (1.5, None, None, None)


def test_counts_of_several_runs_add_up():
    assert Count(10.5, 2, 0).plus(Count(5.5, 1, 3)) == Count(16, 3, 3)


def test_costs_are_medians_and_their_ratios_to_the_first_case():
    floor = [Run(8, 4, b""), Run(10, 5, b""), Run(900, 500, b"")]
    ours = [Run(15, 10, b""), Run(15, 10, b""), Run(1, 1, b"")]
    assert compared([floor, ours]) == [
        {"wall_ms": 10, "cpu_ms": 5, "wall_ratio": 1, "cpu_ratio": 1},
        {"wall_ms": 15, "cpu_ms": 10, "wall_ratio": 1.5, "cpu_ratio": 2},
    ]


def test_a_table_as_text_is_aligned(table: Table):
    assert table.as_text().splitlines() == [
        "Costs",
        "",
        "one request     stored    ms",
        "-----------  ---------  ----",
        "acquire      1,000,000  1.23",
        "status               -     -",
        "A note.",
    ]


def test_a_table_as_markdown_has_a_ruler(table: Table):
    assert table.as_markdown().splitlines() == [
        "**Costs**",
        "",
        "| one request | stored | ms |",
        "| --- | ---: | ---: |",
        "| acquire | 1,000,000 | 1.23 |",
        "| status | - | - |",
        "",
        "A note.",
    ]


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_a_report_names_the_machine_and_what_is_left_out(table: Table, form: str):
    shown = bench.report({"CPU": "Abacus 3000"}, [table], ["Left out: the moon."], form)
    assert "Abacus 3000" in shown
    assert "Left out: the moon." in shown
    if form == "json":
        assert json.loads(shown)["tables"][0]["rows"][0]["ms"] == 1.2345


def test_help_says_how_it_is_used_and_what_to_install():
    command = [sys.executable, str(ROOT / "tools" / "bench.py"), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True).stdout
    for word in ("--quick", "--json", "--markdown", "--only", "apt-get install", " wrk ", " php-cgi"):
        assert word in shown


@pytest.mark.parametrize("wrong", [["--json", "--markdown"], ["--only", "moon"], ["--fast"]], ids=str)
def test_a_wrong_command_line_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        bench.parse(wrong)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_progress_counts_up_to_the_end_and_says_once_what_is_left_out(capsys: pytest.CaptureFixture[str]):
    progress = Progress(3)
    progress.step("one")
    progress.leave_out("Left out: two.")
    progress.leave_out("Left out: two.")
    progress.drop(1)
    progress.step("three")
    assert capsys.readouterr().err.splitlines() == ["  1 of 3: one", "Left out: two.", "  2 of 2: three"]


def test_the_default_rate_limits_let_a_full_run_of_whole_processes_pass():
    for site in {state for state, _, _ in whole_processes.OURS.values()} - {"used up"}:
        acquires = [call for state, call, _ in whole_processes.OURS.values() if state == site and is_acquire(call)]
        assert 1 + len(acquires) * (1 + FULL.rounds) <= 300


def is_acquire(call: Call) -> bool:
    return call.method == "POST" and call.target.count("/") == 2


def test_the_command_of_the_service_is_that_of_its_first_line(site: Site):
    first_line = (ROOT / "public_html" / "index.cgi").read_text(encoding="utf-8").partition("\n")[0]
    assert site.command == [*first_line[2:].split(), str(site.path)]
    assert site.path.read_text(encoding="utf-8").startswith(first_line + "\n")


def test_a_run_reports_what_the_program_wrote_and_cost(tmp_path: Path):
    (tmp_path / "body").write_bytes(b"asked")
    program = "import sys; sum(range(1_000_000)); print(sys.stdin.read(), end='')"
    ended = run(Program([sys.executable, "-ISc", program], {}, str(tmp_path / "body")))
    assert ended.output == b"asked"
    assert 0 < ended.cpu_ms <= ended.wall_ms * 1.5


def test_many_programs_at_once_all_report():
    programs = [Program([sys.executable, "-ISc", f"print({number})"], {}) for number in range(5)]
    assert sorted(ended.output for ended in run_at_once(programs)) == [b"%d\n" % number for number in range(5)]


def test_stored_leases_are_live_for_the_service(site: Site):
    growth.store_leases(site, 50, first_end=time.time() + growth.DAY_SECONDS)
    service = build_service(str(site.var))
    assert len(service.locks.list_live("", 1000, "")) == 51
    assert b'"acquired": false' in site.answer(acquire("/locks/job:7919", "somebody else")).output


def test_ended_leases_and_stale_windows_are_what_a_sweep_deletes(site: Site):
    long_ago = time.time() - 30 * growth.DAY_SECONDS
    growth.store_leases(site, 50, first_end=long_ago)
    growth.store_windows(site, 20, long_ago)
    row = growth._measure_sweep("both", site)
    assert row["said"] == "sweep: 20 rate-limit files and 50 ended leases deleted"
    assert row["acquires"] >= 1
    swept = build_sweeper(str(site.var)).sweep()
    assert (swept.windows, swept.leases) == (0, 0)


@pytest.mark.usefixtures("with_flask")
def test_whole_processes_are_measured_once_each(tmp_path: Path, project: Project):
    progress = Progress(1)
    (table,) = whole_processes.measure(QUICK._replace(rounds=1), tmp_path, project, progress)
    measured = [row["case"] for row in table.rows if row["case"] != PHP]
    assert measured == [
        "the floor: python3 -I -S -c pass",
        *whole_processes.OURS,
        "plain stdlib script, acquire",
        "plain Flask script, acquire",
    ]
    assert table.notes == []
    assert all(row["wall_ms"] > 0 and row["wall_ratio"] > 0 for row in table.rows)
    assert [sentence for sentence in progress.left_out if "php-cgi" not in sentence] == []


@pytest.mark.usefixtures("with_flask")
def test_a_case_that_answers_something_else_is_left_out_and_named(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
):
    broken = ("held", Call("GET", "/nowhere"), b"Status: 200")
    monkeypatch.setattr(whole_processes, "OURS", {"broken": broken})
    progress = Progress(1)
    (table,) = whole_processes.measure(QUICK._replace(rounds=1), tmp_path, project, progress)
    assert "broken" not in [row["case"] for row in table.rows]
    assert any("broken" in sentence and "404" in sentence for sentence in progress.left_out)


def test_a_section_that_fails_is_named_and_the_others_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> list[Table]:
        raise OSError("the disk is full")

    monkeypatch.setattr(whole_processes, "measure", lambda *arguments: [Table("Shown", [])])
    monkeypatch.setattr(growth, "measure", fail)
    _, tables, progress = bench.measure(QUICK, ["growth", "processes"], tmp_path)
    assert [table.title for table in tables] == ["Shown"]
    assert progress.left_out == ["Left out: growth, since it failed: OSError: the disk is full."]


@pytest.mark.usefixtures("with_flask")
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_that_is_stopped_removes_its_copies(signal_number: signal.Signals):
    command = [sys.executable, str(ROOT / "tools" / "bench.py"), "--quick", "--only", "processes"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while " of " not in process.stderr.readline():
            pass
        assert list((ROOT / "build").glob(f"bench-{process.pid}-*")) != []
        process.send_signal(signal_number)
        assert process.wait(DEADLINE_SECONDS) == 128 + signal_number
        assert process.stderr.read().count("Traceback") == 0
    assert list((ROOT / "build").glob(f"bench-{process.pid}-*")) == []
