"""Who is meant by a word on a command line: a login name (a student number may be one), else a uid."""

import os
import pwd

from slurmk8s.errors import PersonFault
from slurmk8s.jobfile.finding import shown


def account(word: str) -> pwd.struct_passwd:
    """The account that a word means on this machine."""
    try:
        return pwd.getpwnam(word)
    except (KeyError, ValueError):
        pass
    if word.isascii() and word.isdecimal() and len(word) <= 10:
        try:
            return pwd.getpwuid(int(word))
        except (KeyError, OverflowError):
            pass
    raise PersonFault(
        f"There is no account {shown(word)!r} on this machine, neither by login name nor by uid.",
        f"See `getent passwd {shown(word)}`; is the user directory (LDAP, sssd) there?",
    )


def groups(person: pwd.struct_passwd) -> tuple[int, ...]:
    """The person's groups, never root's: the NAS would take a member of it for the administrator."""
    return tuple(sorted(set(os.getgrouplist(person.pw_name, person.pw_gid)) - {0}))


def whose(user: str | None) -> pwd.struct_passwd:
    """The person asked about: the caller, or for root anybody."""
    if user is None:
        return account(str(os.getuid()))
    person = account(user)
    if os.geteuid() not in (0, person.pw_uid):
        raise PersonFault("Only root may ask for another person.", "Leave out --user, or call it with sudo.")
    return person
