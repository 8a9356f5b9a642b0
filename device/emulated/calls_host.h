// calls.h for the emulator's own sources, which have no kernel text around them.
#pragma once

#include "kernel_head.h"

#include "types.h"

#include "calls.h"
#include "convert.h"
#include "layout.h"
