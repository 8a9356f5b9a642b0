// The device interface on the host: the text of a CUDA kernel compiled by a C++20 compiler, every thread a fiber of the
// emulator that loads it. The same names as device/ptx/wl.h; no standard header is pulled in.
#pragma once
#include "functions.h"
