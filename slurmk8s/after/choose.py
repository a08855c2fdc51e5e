"""Which of the configured actions a job gets. Pure."""

from slurmk8s.after.asked import about_each_task, wants
from slurmk8s.after.item import Item
from slurmk8s.config.after import After, Chat, Command
from slurmk8s.results.summary import NODE_AFTER_HEAD


def chosen(item: Item, settings: After) -> list[str]:
    """The actions by name."""
    state, types = str(item.summary.get("state")), item.owner.mail_types
    actions: list[str] = []
    # A node that was lost and came back: the head node was first to write a summary, so it tells people.
    told = item.summary.get("written_by") == NODE_AFTER_HEAD
    if settings.mail.host and not told:
        if item.array is not None and not about_each_task(types) and state != "requeued":
            actions += (
                ["array"] if wants(types, "failed") else []
            )  # whether FAIL or END: the array's other tasks decide
        elif wants(types, state):
            actions.append("mail")
    if settings.archive.enabled and state in settings.archive.states and item.summary.get("complete") is True:
        actions.append("archive")
    for name, chat in () if told else settings.chats.items():
        if _concerns(chat, item) and (not chat.asked or wants(types, state)):
            actions.append(f"chat.{name}")
    actions += [f"command.{name}" for name, command in settings.commands.items() if _concerns(command, item)]
    return actions


def _concerns(target: Chat | Command, item: Item) -> bool:
    partition = item.summary.get("partition")
    return item.summary.get("state") in target.states and (
        not target.in_partitions or partition in target.in_partitions
    )
