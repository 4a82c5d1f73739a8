/* Tries: to include hidden files, so that compiler messages quote them
 * Stopped by: the sandbox: the files do not exist there
 * Status: graded
 * Points: 0
 * Reason: there is no file
 */
#include "@OTHER@"
#include "@RUBRIC@"
int bcast_linear;
