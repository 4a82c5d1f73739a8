# Tries: never to leave the cell
# Stopped by: the limit on processor time, or on wall time; the supervisor kills the whole run
# Status: graded
# Points: 0
# Reason: processor time was the limit | wall time was the limit
while True:
    try:
        while True:
            pass
    except BaseException:
        continue
