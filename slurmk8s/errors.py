"""Errors by whose fault they are, since that decides what happens next.

Each carries one sentence for people and, where there is one, a hint: the next step or command. Whoever catches one
needs no other knowledge than its class.
"""


class SlurmK8sError(Exception):
    """Base of all errors that are told to people in one sentence, without a traceback."""

    fault = "ours"

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.sentence} {self.hint}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        """So that one process can hand it to another, whatever a kind of error is made from."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: "type[SlurmK8sError]", args: tuple[object, ...], state: dict[str, object]) -> "SlurmK8sError":
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class PersonFault(SlurmK8sError):
    """The job or the file is wrong: it ends with this sentence, and the node is untouched."""

    fault = "person"


class ClusterFault(SlurmK8sError):
    """Something shared does not answer (Slurm, registry, NAS): try again later; nothing is lost, nothing is deleted."""

    fault = "cluster"


class SlurmUnreachable(ClusterFault):
    """Slurm did not answer, so what it knows is unknown: neither "gone" nor "failed"."""

    of_person = False
    """Whether a program that ran as a person says so: the person can stop or kill it, or make it say anything."""


class NoAnswer(SlurmUnreachable):
    """Slurm's program itself did not come to its end: it was killed, or stopped, or waited for too long."""


class SlurmFull(ClusterFault):
    """Slurm answers and takes no more jobs now; it will when others have ended. The file waits, nobody is refused.

    Ask by key before the next attempt, as after any attempt: sbatch is stopped between two tries of its own.
    """

    def __init__(
        self, sentence: str, hint: str = "", *, limit: str, user: str | None = None, most: int | None = None
    ) -> None:
        super().__init__(sentence, hint)
        self.limit = limit
        """Which one, by Slurm's own name for it (`AssocMaxSubmitJobLimit`, `MaxJobCount`)."""
        self.user = user
        """Whose jobs have to wait; None: everybody's."""
        self.most = most
        """How many jobs it allows, where that is known."""


class NasFull(ClusterFault):
    """There is no room on the NAS, or in the person's quota: what is owed is written when there is."""


class NodeFault(SlurmK8sError):
    """This node cannot do its work: it is drained with this sentence, and the job runs elsewhere."""

    fault = "node"


class SetupError(SlurmK8sError):
    """The configuration or the installation is wrong: the command stops and says what to change."""

    fault = "setup"
