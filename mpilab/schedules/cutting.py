"""How messages are cut: into segments of a size, or into a number of (almost) equal blocks."""

from itertools import pairwise

from mpilab.counting import segments


def pieces(count, element_bytes, segment_bytes):
    """Elements of each segment of a message of `count` elements (mpilab_cut in src_c/tree/tree.h).

    A segment has as many whole elements as fit into `segment_bytes`, but at least one; only the
    last one may be shorter. With segment_bytes 0 the message is one segment, and so is a message
    of nothing.
    """
    number = segments(count, element_bytes, segment_bytes)
    each = max(1, segment_bytes // element_bytes) if number > 1 else count
    return (each,) * (number - 1) + (count - (number - 1) * each,)


def blocks(count, parts):
    """Elements of each of `parts` blocks of `count` elements (mpilab_block_begin in
    src_c/tree/blocks.h): as equal as can be, and some are empty where there are too few elements.
    """
    ends = [count * index // parts for index in range(parts + 1)]
    return tuple(end - begin for begin, end in pairwise(ends))
