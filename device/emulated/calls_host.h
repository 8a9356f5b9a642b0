// calls.h for the emulator's own sources, which have no kernel text around them.
#pragma once

// In order of dependence.
// clang-format off
#include "kernel_head.h"
#include "types.h"
#include "layout.h"
#include "convert.h"
#include "calls.h"
// clang-format on
