"""The only code that talks to a Kubernetes API server: raw JSON in and out, over the official client's connection.

It knows nothing of jobs and pods of ours; it may import config and errors only.
"""
