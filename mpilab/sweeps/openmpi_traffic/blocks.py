"""Messages that are cut into a block for each rank: scatter and allgather, halving and gather.

As everywhere in this package: lists of (source, destination, elements).
"""

from mpilab.schedules.blocks import largest_power_of_two as core_of


def _blocks(shape):
    """Elements of each rank's block: as many as go on each rank, until there are none left."""
    size = -(-shape.count // shape.ranks)
    return [max(0, min(size, shape.count - v * size)) for v in range(shape.ranks)]


def scatter_blocks(shape):
    """Down an in-order binomial tree; a rank under which all blocks are empty gets no message."""
    blocks, messages = _blocks(shape), []
    for child in range(1, shape.ranks):
        lowest = child & -child
        elements = sum(blocks[child : child + lowest])
        if elements:
            messages.append((shape.rank(child - lowest), shape.rank(child), elements))
    return messages


def ring_allgather(shape):
    """P-1 times, each rank hands on the block that it got last."""
    blocks = _blocks(shape)
    return [
        (shape.rank(v), shape.rank(v + 1), blocks[(v - step) % shape.ranks])
        for step in range(shape.ranks - 1)
        for v in range(shape.ranks)
    ]


def doubling_allgather(shape):
    """Partners at distance 1, 2, 4 … swap all that they have.

    A rank whose partner would be past the last one gets what that should have sent from a rank of
    its own group, by halving the group.
    """
    ranks, blocks, messages = shape.ranks, _blocks(shape), []

    def group(first, size):
        return sum(blocks[first : first + size])

    distance = 1
    while distance < ranks:
        for v in range(ranks):
            mine, partner = v - v % distance, v ^ distance
            if partner < ranks:
                messages.append((shape.rank(v), shape.rank(partner), group(mine, distance)))
            theirs = mine ^ distance
            served = ranks - mine - distance  # of my group, these have a partner
            if theirs + distance <= ranks:
                continue
            step = distance >> 1
            while step:
                other, first = v ^ step, v - v % (2 * step)
                if v < other and v < first + served <= other:
                    messages.append((shape.rank(v), shape.rank(other), group(theirs, distance)))
                step >>= 1
        distance <<= 1
    return messages


def fold(shape):
    """Pairs of the first ranks add up halves, so that a power of two of ranks is left."""
    lower = shape.count // 2
    upper = shape.count - lower
    messages = []
    for even in range(0, 2 * (shape.ranks - core_of(shape.ranks)), 2):
        messages += [(even, even + 1, upper), (even + 1, even, lower), (even + 1, even, upper)]
    return messages


def left_rank(shape, new):
    """The rank that has the number `new` among those that are left after folding."""
    rest = shape.ranks - core_of(shape.ranks)
    return 2 * new if new < rest else new + rest


def windows(shape):
    """(what each rank that is left keeps, what it gives) in each step of the halving, in elements.

    Two lists [step][new number]. In step i the partner is at distance 2^i; the one with the lower
    number keeps the first half.
    """
    core = core_of(shape.ranks)
    size, kept, given = [shape.count] * core, [], []
    for step in range(core.bit_length() - 1):
        upper = [bool(new >> step & 1) for new in range(core)]
        first = [whole // 2 for whole in size]
        given.append([f if up else w - f for w, f, up in zip(size, first, upper, strict=True)])
        size = [whole - gone for whole, gone in zip(size, given[-1], strict=True)]
        kept.append(size)
    return kept, given


def halving(shape):
    """Folding, then ranks swap halves of what they have, at distance 1, 2, 4 …"""
    _, given = windows(shape)
    return fold(shape) + [
        (left_rank(shape, new), left_rank(shape, new ^ 1 << step), elements)
        for step, row in enumerate(given)
        for new, elements in enumerate(row)
    ]


def gather_halves(shape):
    """After halving: the blocks go up a binomial tree to the root.

    A root that was folded away takes the place of rank 0, and gets its block from there.
    """
    kept, _ = windows(shape)
    core, messages = core_of(shape.ranks), []
    rest = shape.ranks - core
    is_folded = shape.root < 2 * rest and shape.root % 2 == 1
    if is_folded:
        top = 0
        messages.append((0, shape.root, kept[-1][0]))
    else:
        top = shape.root // 2 if shape.root < 2 * rest else shape.root - rest

    def rank(new):
        return shape.root if is_folded and new == 0 else left_rank(shape, new)

    for new in range(core):
        for step in reversed(range(core.bit_length() - 1)):
            partner = new ^ 1 << step
            if partner >> step == top >> step:  # the root is in the partner's half: hand over
                messages.append((rank(new), rank(partner), kept[step][new]))
                break
    return messages
