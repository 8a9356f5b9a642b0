// The element types of emitted kernels as bit patterns. Arithmetic is done on float: wl::to_float
// and wl::cast<T>, which each device implements, go back and forth. 16-bit types are aligned to 2,
// 8-bit to 1, so packed arrays are what they seem.
#pragma once

namespace wl {
struct bf16 {
  unsigned short bits;
};

struct f16 {
  unsigned short bits;
};

// A float whose low 13 bits the tensor core ignores; stored in 32 bits.
struct tf32 {
  unsigned int bits;
};

struct e4m3 {
  unsigned char bits;
};

struct e5m2 {
  unsigned char bits;
};

template <class T> struct same_type {
  using type = T;
};
template <class T>
using same = typename same_type<T>::type;  // a parameter that takes no part in deduction
}  // namespace wl
