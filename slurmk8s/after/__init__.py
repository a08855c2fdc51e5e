"""After a job: what the site wants done once a bundle is complete: mails, chat rooms, archives, programs, figures.

Nothing here may write into a bundle, hold up the next job or stop the agent. Every action is a process of its own, with
a time limit and no right that it does not need: senders and the service's programs run as an account without rights,
whatever touches the NAS runs as the job's owner. What is to be done is a file on the node's disk until it is done, so a
crash or a dead target only delays it. Where messages go is in the configuration: a person chooses when they are written
to, and among the site's domains to which address, never a server.
"""
