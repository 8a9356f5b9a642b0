// The device interface of CPU kernels: everything an emitted kernel calls.
//
// A kernel is  extern "C" void NAME(void* const* buffers, long long task, void* scratch):  one call computes one block. Register
// tiles are small arrays on the stack that the compiler keeps in vector registers, shared tensors parts of `scratch`, a
// buffer of the calling thread that lives in its L2 cache.
#pragma once
#include "tiles.h"
