"""What a class handed in elsewhere, brought into the folders that `mpilab grade` takes."""
