"""Kinds of arguments that several commands take."""

import argparse

from mpilab.errors import InputError


def positive(text):
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: has to be 1 or more")
    return number


def size(text):
    """Bytes, or elements: 7, 64K, 1M."""
    from mpilab.sweeps.sizes import bytes_of

    try:
        return bytes_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
