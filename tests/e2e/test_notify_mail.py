"""Findings sent by mail: real trainings, a real SMTP server with TLS and log-in."""

from __future__ import annotations

import datetime
import email
import email.policy
import ipaddress
import json
import socket
import ssl
from typing import TYPE_CHECKING

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from forked import Server
from trainings import DIGITS, Outcome, traindbg, watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import EmailMessage
    from pathlib import Path

    from aiosmtpd.smtp import SMTP, Envelope, Session

USER = "trainer@example.org"
PASSWORD = "s3cret+not/to=be&seen"
TO = "me@example.org,you+train@example.com"


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test of traindbg")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_file, key_file


class Mailbox:
    """What an SMTP server on loopback took. `busy`: how many mails it puts off before the first."""

    def __init__(self, folder: Path, form: str = "starttls") -> None:
        self.mails: list[EmailMessage] = []
        self.envelopes: list[tuple[str | None, list[str], bool]] = []
        self.logins: list[bytes] = []
        self.busy = 0
        self.certificate, key = make_certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        options = {
            "starttls": {
                "tls_context": context,
                "require_starttls": True,
                "auth_require_tls": True,
            },
            "tls": {"ssl_context": context, "auth_require_tls": False},
            "plain": {"auth_require_tls": False},
        }[form]
        needs_login = form != "plain"
        with socket.socket() as probe:  # the controller cannot tell which one it was given
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.controller = Controller(
            self,
            hostname="127.0.0.1",
            port=self.port,
            authenticator=self.authenticate,
            auth_required=needs_login,
            **options,
        )
        self.controller.start()

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, data: LoginPassword
    ) -> AuthResult:
        self.logins.append(data.login)
        is_right = data.login == USER.encode() and data.password == PASSWORD.encode()
        return AuthResult(success=is_right, handled=is_right)  # of a refusal the server tells

    async def handle_DATA(  # noqa: N802 - what the server calls
        self, _server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.busy > 0:
            self.busy -= 1
            return "451 Try again later"
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(email.message_from_bytes(content, policy=email.policy.default))
        self.envelopes.append((envelope.mail_from, envelope.rcpt_tos, session.ssl is not None))
        return "250 Taken"

    def stop(self) -> None:
        self.controller.stop()


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    box = Mailbox(tmp_path)
    yield box
    box.stop()


def target(box: Mailbox, more: str = "", scheme: str = "smtp") -> str:
    return (
        f"{scheme}://{USER}@127.0.0.1:{box.port}?to={TO}&ca={box.certificate}"
        f"&password=env:MAIL_PASSWORD{more}"
    )


def test_a_mail_for_each_finding_by_starttls_after_a_log_in(
    tmp_path: Path, mailbox: Mailbox, forked: Server
) -> None:
    mailbox.busy = 1
    options = ("--notify", target(mailbox))
    outcome = forked.run(
        tmp_path / "runs",
        DIGITS,
        "--fault",
        "learning_rate",
        options=options,
        MAIL_PASSWORD=PASSWORD,
    )
    assert outcome.code == 0, outcome.stderr
    told = {f["rule"] for f in outcome.verdict["findings"] if f["severity"] != "info"}
    assert len(mailbox.mails) == len(told) > 0
    assert set(mailbox.logins) == {USER.encode()}
    for sender, recipients, is_encrypted in mailbox.envelopes:
        assert sender == USER
        assert recipients == TO.split(",")
        assert is_encrypted
    subjects = " ".join(mail["Subject"] for mail in mailbox.mails)
    assert all(rule in subjects for rule in told)
    mail = next(m for m in mailbox.mails if "exploding_gradient" in m["Subject"])
    assert mail["Subject"].startswith("[traindbg] error: exploding_gradient at step ")
    assert [str(a) for a in mail["To"].addresses] == TO.split(",")
    assert mail["From"].addresses[0].addr_spec == USER
    assert mail["Auto-Submitted"] == "auto-generated"
    age = datetime.datetime.now(datetime.timezone.utc) - mail["Date"].datetime
    assert abs(age.total_seconds()) < 600
    body = mail.get_content()
    finding = next(f for f in outcome.verdict["findings"] if f["rule"] == "exploding_gradient")
    assert finding["fix"] in body
    ids = [m["Message-ID"] for m in mailbox.mails]
    assert len(set(ids)) == len(ids)
    journal = (outcome.run / "actions.jsonl").read_text()
    assert {json.loads(line)["result"] for line in journal.splitlines()} == {"done"}
    everything = outcome.stdout + outcome.stderr + journal
    assert PASSWORD not in everything
    for path in outcome.run.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


def test_tls_from_the_first_byte(faulty: Outcome, tmp_path: Path) -> None:
    box = Mailbox(tmp_path, "tls")
    try:
        notify = ("--notify", target(box, scheme="smtps"))
        outcome = watched(faulty, tmp_path, *notify, MAIL_PASSWORD=PASSWORD)
    finally:
        box.stop()
    assert outcome.code == 0, outcome.stderr
    assert box.mails


def test_a_server_without_tls_gets_no_word_unless_that_is_wanted(
    faulty: Outcome, tmp_path: Path
) -> None:
    box = Mailbox(tmp_path, "plain")
    try:
        notify = f"smtp://127.0.0.1:{box.port}?to=me@example.org"
        refused = watched(faulty, tmp_path / "a", "--notify", notify)
        assert not box.mails
        assert "offers no TLS" in refused.stderr
        outcome = watched(faulty, tmp_path / "b", "--notify", notify + "&tls=off")
    finally:
        box.stop()
    assert refused.code == outcome.code == 0, outcome.stderr
    assert box.mails
    assert box.envelopes[0][0].startswith("traindbg@")


@pytest.mark.parametrize("what", ["password", "certificate"])
def test_what_is_refused_is_said_once_and_changes_nothing(
    faulty: Outcome, tmp_path: Path, mailbox: Mailbox, what: str
) -> None:
    notify = target(mailbox)
    password = "wrong" if what == "password" else PASSWORD
    if what == "certificate":
        notify = notify.replace(f"&ca={mailbox.certificate}", "")
    outcome = watched(faulty, tmp_path / "runs", "--notify", notify, MAIL_PASSWORD=password)
    assert outcome.code == 0, outcome.stderr
    assert not mailbox.mails
    expected = "refuses the user or the password" if what == "password" else "is not trusted"
    assert expected in outcome.stderr
    journal = [json.loads(x) for x in (outcome.run / "actions.jsonl").read_text().splitlines()]
    assert all(expected in entry["result"] for entry in journal)
    assert len({(e["rule"], e["key"]) for e in journal}) == len(journal), "each is tried once"


@pytest.mark.parametrize(
    ("notify", "said"),
    [
        (f"smtp://me:{PASSWORD}@host?to=a@b.org", "does not belong on a command line"),
        ("smtp://host", "to: is missing"),
        ("smtp://host?tu=a@b.org", "did you mean 'to'?"),
        ("smtp://host?to=a", "is no address"),
        ("smtp://me@host?to=a@b.org&password=env:NO_SUCH", "NO_SUCH"),
        ("smtp://me@host?to=a@b.org&tls=off&password=env:MAIL_PASSWORD", "everybody to read"),
    ],
)
def test_a_target_that_is_none_is_said_before_anything_starts(notify: str, said: str) -> None:
    command = ("run", "--notify", notify, "--", "python", "-c", "print('ran')")
    result = traindbg(*command, MAIL_PASSWORD=PASSWORD)
    assert result.returncode == 2
    assert said in result.stderr
    assert PASSWORD not in result.stderr
    assert "ran" not in result.stdout
