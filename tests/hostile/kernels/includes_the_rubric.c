/* Tries: hidden files by #include: what cannot be compiled is told in the message
 * Stopped by: the sandbox: the file is not there
 * Status: graded
 * Points: 0
 * Reason: there is no file
 */
#include "@OTHER@"
#include "@RUBRIC@"
int bcast_linear;
