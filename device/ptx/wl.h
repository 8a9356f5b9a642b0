// The device interface for NVIDIA GPUs: every function is a thin inline of PTX instructions.
// docs/device.md is its table. device/emulated/wl.h offers the same names on the host.
#pragma once
// In order of dependence.
// clang-format off
#include "kernel_head.h"
#include "types.h"
#include "integers.h"
#include "layout.h"
#include "casts.h"
#include "threads.h"
#include "value_functions.h"
#include "moves.h"
#include "atomics.h"
#include "shared_memory.h"
#include "barriers.h"
#include "mma_sync.h"
#include "tma.h"
#include "wgmma.h"
// clang-format on
