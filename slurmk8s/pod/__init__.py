"""The pod: its manifest, made by a pure function, and the runtimes that take it.

The same manifest goes to every backend. A backend creates, observes and deletes; it decides nothing about a job.
"""
