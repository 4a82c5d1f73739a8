"""Text that is shown or read."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

from mpilab.util.text import syntax_tree


def test_threads_parse_python_at_the_same_time():
    """A garbage collection lets other threads run, also while a tree is made."""
    source = "\n".join(f"x{i} = [f(a[{i}] + {i} * (b - c)) for a in d]" for i in range(200))

    def switch(*_):
        time.sleep(0)

    threshold = gc.get_threshold()
    gc.callbacks.append(switch)
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as threads:
            trees = list(threads.map(syntax_tree, [source] * 8))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(switch)
    assert [len(tree.body) for tree in trees] == [200] * 8
