// The device interface on the host: the text of a CUDA kernel compiled by a C++20 compiler, every thread a fiber of the
// emulator that loads it. The same names as device/ptx/wl.h; no standard header is pulled in.
#pragma once
// In order of dependence.
// clang-format off
#include "kernel_head.h"
#include "types.h"
#include "layout.h"
#include "convert.h"
#include "packed.h"
#include "calls.h"
#include "registers.h"
#include "value_functions.h"
#include "functions.h"
// clang-format on
