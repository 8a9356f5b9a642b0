// A thread's registers, instrumented: WL_REG arrays know which elements hold a value and which are
// lent to wgmma, and the machine reports an access that the GPU would not define, with the line of
// the text.
#pragma once

namespace wl::emu {
// An argument that brings the line it was written on.
template <class T> struct Here {
  T value;
  int line;

  Here(T given, int at = __builtin_LINE()) : value(given), line(at) { self->line = at; }
};

using Index = Here<long long>;

template <class T> class ElementRef {
 public:
  ElementRef(RegisterState& state, T* data, Index i) : state_(state), data_(data), i_(i) {}

  operator T() const {
    const bool inside = touch();
    if (!inside || state_.owners || !state_.filled[i_.value]) register_bad(state_, i_.value, false);
    return data_[inside ? i_.value : 0];
  }

  const ElementRef& operator=(T value) const {
    const bool inside = touch();
    if (!inside || state_.owners) register_bad(state_, i_.value, true);
    if (!inside) return *this;
    data_[i_.value] = value;
    state_.filled[i_.value] = true;
    return *this;
  }

  const ElementRef& operator=(const ElementRef& other) const {
    return *this = static_cast<T>(other);
  }

  ElementRef(const ElementRef&) = default;
#define WL_COMPOUND(op)                                            \
  template <class U> const ElementRef& operator op##=(U x) const { \
    return *this = static_cast<T>(static_cast<T>(*this) op x);     \
  }
  WL_COMPOUND(+)
  WL_COMPOUND(-)
  WL_COMPOUND(*)
#undef WL_COMPOUND

 private:
  bool touch() const {  // by an ordinary instruction, inside the array or not
    self->line = i_.line;
    state_.touched = self->wgmma_fences + 1;
    state_.loose = true;
    return i_.value >= 0 && i_.value < state_.n;
  }

  RegisterState& state_;
  T* data_;
  Index i_;
};

// What wl::at returns: a place in a register array, T* on the GPU.
template <class T> struct Handle {
  T* data;
  RegisterState* state;
  int at;

  RegisterRun run(int count) const { return RegisterRun{data, state, at, count}; }
};

template <class T, int N> class Registers {
 public:
  explicit Registers(const char* name) : state_{name, N, filled_} {}

  Registers(const Registers&) = delete;

  ~Registers() {
    if (state_.owners) registers_gone(state_);
  }

  ElementRef<T> operator[](Index i) { return ElementRef<T>(state_, data_, i); }

  Handle<T> handle(int i) { return Handle<T>{data_ + i, &state_, i}; }

 private:
  alignas(16) T data_[N];
  bool filled_[N] = {};
  RegisterState state_;
};
}  // namespace wl::emu

namespace wl {
template <class T, int N> emu::Handle<T> at(emu::Registers<T, N>& r, int i) {
  return r.handle(i);
}
}  // namespace wl
