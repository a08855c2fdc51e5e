"""Questions and chores of people and administrators: why a job waits, whether the books agree, images, single pods.

Nothing here is part of a job's journey: jobs run the same when nobody calls any of it.
"""
