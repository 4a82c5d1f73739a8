/* Snapshots of a piece of memory, see memory.c and mpilab_recorder_watch. */
#ifndef MPILAB_MEMORY_H
#define MPILAB_MEMORY_H

/* Look at the memory after each call (a branch on this is all that it costs otherwise). */
extern int memory_is_watched;

/* `record` has just ended: keep what the memory holds now, if that is new. */
void memory_look(int record);
/* The kernel has returned: the last snapshot, and the end of the file. */
void memory_finish(void);

#endif
