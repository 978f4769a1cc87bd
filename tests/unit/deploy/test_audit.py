"""`make audit`: pip-audit itself, asking a service on loopback that knows one vulnerability."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.harness import audit
from tests.harness.played_server import played

HEAD = "# Locked on 2026-01-02. Used by pip install -c. Renew it with: make lock\n"
VULNERABILITY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "aliases": ["CVE-2026-12345"],
    "summary": "A header that never ends.",
    "affected": [
        {
            "package": {"name": "leaky", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2.4"}]}],
        }
    ],
}


@pytest.fixture(scope="module")
def osv() -> Iterator[str]:
    """A service that knows one vulnerability, of `leaky`."""

    def answer(_: str, question: bytes) -> tuple[int, bytes]:
        known = json.loads(question)["package"]["name"] == "leaky"
        return 200, json.dumps({"vulns": [VULNERABILITY]} if known else {}).encode()

    with played(answer) as address:
        yield f"{address}/"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def run(service: str, *pins: str, accepted: str = "", arguments: tuple[str, ...] = ()) -> tuple[int, str]:
        (tmp_path / "constraints.txt").write_text(HEAD + "".join(f"{pin}\n" for pin in pins))
        (tmp_path / "accepted.toml").write_text(accepted)
        files = [f"--constraints={tmp_path / 'constraints.txt'}", f"--accepted={tmp_path / 'accepted.toml'}"]
        asked = ["-s", "osv", "--osv-url", service, "--cache-dir", str(tmp_path / "cache")]
        code = audit.main([*files, *asked, *arguments])
        return code, capsys.readouterr().out

    return run


def accept(until: date) -> str:
    return f'[[accepted]]\nid = "CVE-2026-12345"\nreason = "We send no header."\nuntil = {until}\n'


def today() -> date:
    return datetime.now(UTC).date()


def test_a_vulnerability_fails_with_its_package_the_fixed_version_and_what_to_do(run, osv):
    code, said = run(osv, "harmless==3.0", "leaky==1.2.3")
    assert code == 1
    assert re.search("leaky 1.2.3: .*CVE-2026-12345.* Fixed in 1.2.4: pip install", said)
    assert "GHSA-aaaa-bbbb-cccc" in said
    assert "harmless" not in said


def test_an_accepted_vulnerability_passes_until_its_day(run, osv):
    assert run(osv, "harmless==3.0") == (0, "audit: nothing open in 1 packages\n")
    code, _ = run(osv, "leaky==1.2.3", accepted=accept(today() + timedelta(days=1)))
    assert code == 0
    code, said = run(osv, "leaky==1.2.3", accepted=accept(date(2026, 1, 3)))
    assert code == 1
    assert "It was accepted until 2026-01-03." in said


def test_a_service_out_of_reach_is_one_line_with_the_age_of_the_lock(run):
    unreachable = "http://127.0.0.1:9/"
    code, said = run(unreachable, "harmless==3.0")
    assert code == 0
    days = (today() - date(2026, 1, 2)).days
    age = rf"versions locked on 2026-01-02 \({days} days ago\)"
    assert re.fullmatch(rf"audit: no vulnerability data here \(.+\); {age}\n", said)
    code, _ = run(unreachable, "harmless==3.0", arguments=("--need-data",))
    assert code == 1


def test_an_index_that_knows_no_package_is_no_clean_bill(monkeypatch, tmp_path):
    nothing = {"dependencies": [{"name": "leaky", "skip_reason": "Dependency not found on PyPI"}]}
    tool = tmp_path / "pip_audit.py"
    tool.write_text(f"print('''{json.dumps(nothing)}''')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(audit.NoData, match="knows none of the packages"):
        audit.pip_audit(tmp_path / "constraints.txt")


def test_a_service_that_hangs_is_given_up(monkeypatch, tmp_path):
    (tmp_path / "pip_audit.py").write_text("import threading; threading.Event().wait()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(audit.NoData, match="within 1 s"):
        audit.pip_audit(tmp_path / "constraints.txt", seconds=1.0)


def test_an_argument_that_pip_audit_does_not_know_fails(run, osv):
    code, said = run(osv, "harmless==3.0", arguments=("--no-such-option",))
    assert code == 1
    assert "--no-such-option" in said


@pytest.mark.parametrize(
    "entry",
    [
        '[[accepted]]\nid = "CVE-2026-12345"\nuntil = 2026-01-31\n',
        '[[accepted]]\nid = "CVE-2026-12345"\nreason = " "\nuntil = 2026-01-31\n',
        '[[accepted]]\nid = "CVE-2026-12345"\nreason = "later"\nuntil = "2026-01-31"\n',
    ],
)
def test_an_acceptance_needs_an_id_a_reason_and_a_day(tmp_path, entry):
    (tmp_path / "accepted.toml").write_text(entry)
    with pytest.raises(audit.BadInput, match="entry 1"):
        audit.read_accepted(tmp_path / "accepted.toml")


def test_our_lock_and_our_acceptances_are_well_formed(root):
    assert audit.locked_on(root / "constraints.txt") <= today() + timedelta(days=1)
    audit.read_accepted(root / "deploy/accepted_vulnerabilities.toml")


@pytest.mark.parametrize(
    ("text", "message"), [("numpy==2.1\n", "line 1"), ("", "line 1"), (HEAD + "numpy>=2\n", "line 2")]
)
def test_a_lock_without_its_day_or_with_a_loose_version_is_refused(tmp_path, text, message):
    (tmp_path / "constraints.txt").write_text(text)
    with pytest.raises(audit.BadInput, match=message):
        audit.locked_on(tmp_path / "constraints.txt")


def test_make_check_audits_and_make_lock_writes_the_day(root):
    makefile = (root / "Makefile").read_text()
    check = makefile.split("\ncheck:")[1].split("\n\n")[0]
    assert "audit" in check.splitlines()[-1]
    assert "# Locked on $$(date -u +%F). Used by pip install -c. Renew it with: make lock" in makefile
