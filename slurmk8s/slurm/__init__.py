"""The only code that talks to Slurm.

`client.Slurm` is the whole of what the rest may ask; the command-line clients serve it now. Nothing here decides what
to do with an answer. An unanswered question raises SlurmUnreachable: unknown, never "gone".
"""
