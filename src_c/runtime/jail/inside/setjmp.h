/* WebAssembly has no long jumps: the linker says that they are not available. */
#ifndef MPILAB_INSIDE_SETJMP_H
#define MPILAB_INSIDE_SETJMP_H
typedef int jmp_buf[1];
int setjmp(jmp_buf at);
_Noreturn void longjmp(jmp_buf at, int value);
#endif
