// Global memory, BYTES in 1, 2, 4, 8, 16 per thread; registers and address aligned to BYTES. The _stream forms are for data
// used once: they leave the L1 cache alone.
#pragma once

namespace wl {

template <int BYTES, class T>
WL_FN void ld_global(T* dst, const T* p) {
  GlobalLoad<BYTES>::go(dst, p);
}
template <int BYTES, class T>
WL_FN void ld_global(T* dst, const T* p, bool pred, same<T> fill) {
  WL_UNROLL for (int i = 0; i < BYTES / static_cast<int>(sizeof(T)); ++i) dst[i] = fill;
  GlobalLoad<BYTES>::go(dst, p, pred);
}
template <int BYTES, class T>
WL_FN void ld_global_stream(T* dst, const T* p) {
  GlobalLoadStream<BYTES>::go(dst, p);
}
template <int BYTES, class T>
WL_FN void ld_global_stream(T* dst, const T* p, bool pred, same<T> fill) {
  WL_UNROLL for (int i = 0; i < BYTES / static_cast<int>(sizeof(T)); ++i) dst[i] = fill;
  GlobalLoadStream<BYTES>::go(dst, p, pred);
}
// An index out of a tensor that nobody writes meanwhile: -1 where pred is false, or where it is no int.
WL_FN int lookup(const int* p, bool pred = true) {
  int index = -1;
  asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.nc.b32 %0, [%1]; }" : "+r"(index) : "l"(p), "r"(int(pred)));
  return index;
}
WL_FN int lookup(const long long* p, bool pred = true) {
  long long index = -1;
  asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.nc.b64 %0, [%1]; }" : "+l"(index) : "l"(p), "r"(int(pred)));
  return index == static_cast<int>(index) ? static_cast<int>(index) : -1;
}

template <int BYTES, class T>
WL_FN void st_global(T* p, const T* src) {
  GlobalStore<BYTES>::go(p, src);
}
template <int BYTES, class T>
WL_FN void st_global(T* p, const T* src, bool pred) {
  if (pred) GlobalStore<BYTES>::go(p, src);
}
template <int BYTES, class T>
WL_FN void st_global_stream(T* p, const T* src) {
  GlobalStoreStream<BYTES>::go(p, src);
}
template <int BYTES, class T>
WL_FN void st_global_stream(T* p, const T* src, bool pred) {
  if (pred) GlobalStoreStream<BYTES>::go(p, src);
}

}  // namespace wl
