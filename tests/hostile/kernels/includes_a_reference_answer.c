/* Tries: the kit's own answer by #include
 * Stopped by: the sandbox: the file is not there
 * Status: graded
 * Points: 0
 * Reason: there is no file
 */
#include "@ROOT@/src_c/bcast/linear.c"
