"""Readers of what the recorder wrote: calls, messages, rounds, buffers, file requests.

Input: the folder of a run. Output: a `recording.Recording`, the source lines of its call sites, the
contents of its buffers, and the traffic pending when the run made no more progress (`traffic`).
"""
