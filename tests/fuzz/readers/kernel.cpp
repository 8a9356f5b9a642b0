#include "readers.h"
WARPLOOM_FUZZ_READER(read_kernel)
