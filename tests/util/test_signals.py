"""Interrupts that Python would lose."""

import signal
import threading
from concurrent.futures import Future

import pytest

from mpilab.util import door


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_another_thread_gets_ends_the_wait_of_the_main_thread(number):
    """Like a signal that arrives just before the main thread begins to wait, which nothing
    wakes."""
    never = Future()

    def interrupt():
        signal.pthread_kill(threading.get_ident(), number)

    with door.heeded(), pytest.raises(door.Interrupted) as interrupted:
        timer = threading.Timer(0.1, interrupt)
        timer.start()
        list(door.as_completed([never]))
    timer.join()
    assert interrupted.value.status == 128 + number


def test_every_future_comes_once_it_is_done():
    futures = [Future() for _ in range(5)]
    came = door.as_completed(futures)
    done = []
    for future in reversed(futures):
        future.set_result(None)
        done.append(next(came))
    assert set(done) == set(futures)
    assert list(came) == []
