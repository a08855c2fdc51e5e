"""From a file dropped on the NAS to one Slurm job or one reason.

A scan decides, events only wake it. A still file is claimed by one rename into a private folder, read once, checked,
submitted *held* as its owner, recorded, released and answered with a receipt. What has been done for a claim is which
files exist in its folder, so any watcher can finish any claim after any crash. Nothing here knows how a job runs.
"""
