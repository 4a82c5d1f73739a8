/* What algorithms are tuned by, until somebody sets it: their own defaults. */
#include "mpilab.h"

struct mpilab_tuning mpilab_tuning;
