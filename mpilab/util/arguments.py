"""Argument types (argparse) that several commands share."""

import argparse

from mpilab.errors import InputError


def positive(text):
    """An integer of 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: has to be 1 or more")
    return number


def size(text):
    """A size in bytes or elements: 7, 64K, 1M."""
    from mpilab.util.units import bytes_of

    try:
        return bytes_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text):
    """A time in seconds, more than 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: has to be a number of seconds, e.g. 60")
    return number
