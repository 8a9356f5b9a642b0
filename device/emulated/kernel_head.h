// Kernel heads and the rest of the frame of an emitted text, on the host.
//
// WL_EXPORT(name) makes the C symbol name_entry(void** args), which the emulator calls once per
// CUDA thread, each call on a fiber of its own; args[i] points to the i-th parameter.
#pragma once
#define WL_PURE inline
#define WL_FN inline
#include "convert.h"
#include "layout.h"

// Of internal linkage, so that a kernel named like a function of the C library is not taken for it.
#define WL_KERNEL(name, max_threads, min_blocks) static void name
#define WL_KERNEL_CLUSTER(name, max_threads, min_blocks, cx, cy, cz) static void name
#define WL_EXPORT(name)                       \
  extern "C" void name##_entry(void** args) { \
    ::wl::emu::call_with(&name, args);        \
  }

#define WL_TENSOR_MAP const ::wl::TensorMap
#define WL_REG(T, name, n)          \
  ::wl::emu::Registers<T, n> name { \
    #name                           \
  }
#define WL_UNROLL
#define WL_UNROLL_8
#define WL_SHARED_BASE() ::wl::shared_base()

namespace wl::emu {
inline constexpr unsigned kSharedBase =
    1024;  // first address of dynamic shared memory, as on the GPU

template <class... P> struct Call {
  Call(void (*kernel)(P...), P... args) { kernel(args...); }
};

template <class... P> void call_with(void (*kernel)(P...), void** args) {
  Call<P...>{kernel, *static_cast<const P*>(*args++)...};  // braces: in order
}
}  // namespace wl::emu
