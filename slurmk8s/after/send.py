"""The process that sends one message: `python -I -m slurmk8s.after.send`, as an account without rights.

It knows what it was told on stdin and nothing else. A refusal that will be the same tomorrow is a person's fault, all
others are the cluster's: tried again.
"""

import contextlib
import ctypes
import email.utils
import smtplib
import ssl
import sys
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any

from slurmk8s.after.answering import answer
from slurmk8s.errors import ClusterFault, PersonFault

_PR_SET_DUMPABLE = 4


def send(request: dict[str, Any]) -> dict[str, Any]:
    """Mail, or a chat room."""
    (mail if request["kind"] == "mail" else chat)(request)
    return {}


def mail(request: dict[str, Any]) -> None:
    """One mail to one or a few people."""
    message = composed(request)
    seconds = request["seconds"]
    where = f"the mail server {request['host']}:{request['port']}"
    try:
        with _connection(request, seconds) as server:
            if request["user"]:
                server.login(request["user"], request["password"])
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        fault = PersonFault if all(500 <= code < 600 for code in codes) else ClusterFault
        raise fault(f"{where} does not take mail for {', '.join(error.recipients)}: {error.recipients}.") from None
    except smtplib.SMTPDataError as error:
        fault = PersonFault if 500 <= error.smtp_code < 600 else ClusterFault
        raise fault(f"{where} refused the mail: {error.smtp_code} {error.smtp_error!r}.") from None
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise ClusterFault(f"{where} did not take the mail: {error}.", "Check [after.mail].") from None


def composed(request: dict[str, Any]) -> EmailMessage:
    """The mail. The email package refuses a header with a line break, whatever was overlooked before."""
    message = EmailMessage()
    message["From"] = Address("slurmk8s", addr_spec=request["from"])
    message["To"] = [Address(addr_spec=address) for address in request["to"]]
    message["Subject"] = request["subject"]
    message["Date"] = email.utils.formatdate(localtime=True)
    # The same for every try of the same message: if a crash makes two of it, most programs show one.
    message["Message-ID"] = request["message_id"]
    message["Auto-Submitted"] = "auto-generated"  # nobody's absence note answers it
    message.set_content(request["text"])
    return message


@contextlib.contextmanager
def _connection(request: dict[str, Any], seconds: float) -> Any:  # noqa: ANN401 - an iterator of servers
    host, port, security = request["host"], request["port"], request["security"]
    if security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=seconds, context=ssl.create_default_context())
    else:
        server = smtplib.SMTP(host, port, timeout=seconds)
    with server:
        if security == "starttls":
            server.starttls(context=ssl.create_default_context())
        yield server


def chat(request: dict[str, Any]) -> None:
    """One message to a room. Plain text: apprise then escapes what the service would read something into."""
    try:
        import apprise  # noqa: PLC0415 - mails must not pay for it
    except ImportError:
        raise ClusterFault("apprise is not installed.", "Install slurmk8s with its extra: slurmk8s[notify].") from None
    # Nothing of the message is a template, a path or an attachment.
    asset = apprise.AppriseAsset(app_id="slurmk8s", plugin_paths=[], interpret_escapes=False, secure_logging=True)
    room = apprise.Apprise(asset=asset)
    if not request["urls"] or not all(room.add(url) for url in request["urls"]):
        raise ClusterFault("Its url_file holds an address that apprise does not know.", "Check the file's lines.")
    said: list[str] = []
    with apprise.LogCapture(level=30) as log:  # type: ignore[no-untyped-call]
        sent = room.notify(
            body=request["text"],
            title=request["subject"],
            body_format=apprise.NotifyFormat.TEXT,
            interpret_escapes=False,
        )
        said += log.getvalue().strip().splitlines()[-2:]
    if not sent:
        raise ClusterFault(f"The room did not take the message: {' '.join(said) or 'no reason given'}")


def main() -> int:
    """Answer one request."""
    # Others may run as this account: they shall not read a password out of our memory.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return answer(send)


if __name__ == "__main__":
    sys.exit(main())
