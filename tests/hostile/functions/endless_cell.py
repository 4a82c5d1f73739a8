# Tries: never to finish a cell
# Stopped by: the limit on processor time, or on wall time; the supervisor kills the whole run
# Status: graded
# Points: 0
# Reason: limit on processor time | limit on wall time
while True:
    try:
        while True:
            pass
    except BaseException:
        continue
