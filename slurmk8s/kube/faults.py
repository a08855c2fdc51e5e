"""What an API server can answer instead of what was asked for.

No answer is *unknown*: it says nothing about the object, so nobody may take it for gone.
"""

from typing import Any

from slurmk8s.errors import ClusterFault, SlurmK8sError


class KubeUnreachable(ClusterFault):
    """No answer, or one about the server's own trouble (5xx, 429, timeout, TLS): try again later."""


class Gone(SlurmK8sError):
    """410: the version a watch or a list's next page starts from has been compacted away; list again."""


class Refused(SlurmK8sError):
    """4xx: the server understood and said no. Which `code` and `reason` decides whose fault it is."""

    def __init__(self, sentence: str, hint: str = "", *, code: int, status: dict[str, Any] | None = None) -> None:
        super().__init__(sentence, hint)
        status = status or {}
        self.code = code
        self.reason: str = status.get("reason") or ""
        """One word for programs, e.g. `AlreadyExists`, `Forbidden`, `Invalid`."""
        self.message: str = status.get("message") or ""
        """The server's own sentence."""
        self.details: dict[str, Any] = status.get("details") or {}
        """Kind, name, and for `Invalid` the causes by field."""


class NotFound(Refused):
    """404: there is no such object, nor namespace; `details` says which."""


class Conflict(Refused):
    """409: it exists already (`AlreadyExists`), or is not the one that was meant (`Conflict`)."""


def answer_fault(code: int, status: dict[str, Any], asked: str, credential: str) -> SlurmK8sError:
    """The fault for an answer that is not a success. `asked` is e.g. "GET /api/v1/nodes"."""
    said = (status.get("message") or f"HTTP {code}").rstrip(".")
    if code == 410:
        return Gone(f"The Kubernetes API server no longer has that version ({asked}): {said}.")
    if code >= 500 or code == 429:
        return KubeUnreachable(f"The Kubernetes API server answers {code} ({asked}): {said}.")
    sentence = f"The Kubernetes API server refused {asked}: {said}."
    hint = ""
    if code == 401:
        hint = f"The credential in {credential} is not valid (any more): make a new one."
    elif code == 403 and _by_rights(said):
        hint = f"The credential in {credential} lacks the right: apply what `slurmk8s cluster rbac` prints."
    kind = {404: NotFound, 409: Conflict}.get(code, Refused)
    return kind(sentence, hint, code=code, status=status)


def _by_rights(said: str) -> bool:
    """RBAC's own words; quotas and admission policies answer 403 as well, for other reasons."""
    return " cannot " in said and " resource " in said
