/* The tunables of algorithms; until set, they mean the algorithms' defaults. */
#include "mpilab.h"

struct mpilab_tuning mpilab_tuning;
