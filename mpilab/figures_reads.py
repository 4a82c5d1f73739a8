"""The figure that holds our two-phase read against MPI_File_read_all."""

from mpilab.bench import figure

MATRIX, RANKS = "2048x2048", 4


@figure("×", "≥ 2", "the better MPI_File_read_all of OMPIO and ROMIO, in turn, in one run")
def two_phase_vs_read_all(repetitions=15):
    """2048 x 2048 doubles on 4 ranks, in the page cache: MPI_File_read_all over read_two_phase."""
    from mpilab import readers

    # What is fast has to be right, too.
    readers.count(MATRIX, RANKS, readers.RIVALS)
    seconds, _ = readers.time(MATRIX, RANKS, readers.RIVALS, repetitions=repetitions)
    return readers.speed_ups(seconds)
