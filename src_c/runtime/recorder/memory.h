/* Snapshots of a piece of memory, see memory.c and mpilab_recorder_watch. */
#ifndef MPILAB_MEMORY_H
#define MPILAB_MEMORY_H

/* Check the memory after each call (otherwise, a branch on this is the only cost). */
extern int memory_is_watched;

/* `record` has just ended: store the contents of the memory if they have changed. */
void memory_look(int record);
/* The kernel has returned: the last snapshot, and the end of the file. */
void memory_finish(void);

#endif
