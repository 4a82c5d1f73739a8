"""Readers of what the recorder wrote: calls, messages, rounds, buffers, file requests.

In: the folder of a run. Out: what the ranks did.

recording     Recording: the calls and messages of all ranks, and their rounds
callsites     the source lines of calls and crashes
matching      which calls of the ranks match, or are still pending
snapshots     the contents of the buffers, round by round
file_access   the requests to the operating system below MPI's file calls
export        recordings as OTF2 archives and as Chrome's trace events
"""
