"""Readers of what the recorder wrote: calls, messages, rounds, buffers, file requests.

Input: the folder of a run. Output: a `recording.Recording`, the source lines of its call sites, the
contents of its buffers, and which calls of the ranks match or are still pending (`matching`).
"""
