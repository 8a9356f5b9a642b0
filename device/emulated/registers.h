// A thread's registers, instrumented: WL_REG arrays know which elements hold a value and which are lent to wgmma, and the
// machine reports an access that the GPU would not define, with the line of the text.
#pragma once
namespace wl::emu {
// An index that brings the line it was written on.
struct Index {
  long long i;
  int line;
  Index(long long index, int at = __builtin_LINE()) : i(index), line(at) {}
};

template <class T>
class ElementRef {
 public:
  ElementRef(RegisterState& state, T* data, Index i) : state_(state), data_(data), i_(i) {}
  operator T() const {
    const long long i = i_.i;
    state_.touched = self->wgmma_fences + 1;
    state_.loose = true;
    if (i < 0 || i >= state_.n || state_.owners || !(state_.filled[i >> 6] >> (i & 63) & 1)) {
      register_read_bad(state_, i, i_.line);
      if (i < 0 || i >= state_.n) return data_[0];
    }
    return data_[i];
  }
  const ElementRef& operator=(T value) const {
    const long long i = i_.i;
    state_.touched = self->wgmma_fences + 1;
    state_.loose = true;
    if (i < 0 || i >= state_.n || state_.owners) {
      register_write_bad(state_, i, i_.line);
      if (i < 0 || i >= state_.n) return *this;
    }
    data_[i] = value;
    state_.filled[i >> 6] |= 1ull << (i & 63);
    return *this;
  }
  const ElementRef& operator=(const ElementRef& other) const { return *this = static_cast<T>(other); }
  ElementRef(const ElementRef&) = default;
#define WL_COMPOUND(op)                                        \
  template <class U>                                           \
  const ElementRef& operator op##=(U x) const {                \
    return *this = static_cast<T>(static_cast<T>(*this) op x); \
  }
  WL_COMPOUND(+)
  WL_COMPOUND(-)
  WL_COMPOUND(*)
#undef WL_COMPOUND

 private:
  RegisterState& state_;
  T* data_;
  Index i_;
};

// What wl::at returns: a place in a register array, T* on the GPU.
template <class T>
struct Handle {
  T* data;
  RegisterState* state;
  int at;
  RegisterRun run(int count) const { return RegisterRun{data, state, at, count}; }
};

template <class T, int N>
class Registers {
 public:
  explicit Registers(const char* name) {
    state_.name = name;
    state_.n = N;
    state_.filled = filled_;
  }
  Registers(const Registers&) = delete;
  ~Registers() {
    if (state_.owners) registers_gone(state_);
  }
  ElementRef<T> operator[](Index i) { return ElementRef<T>(state_, data_, i); }
  Handle<T> handle(int i) { return Handle<T>{data_ + i, &state_, i}; }

 private:
  alignas(16) T data_[N];
  unsigned long long filled_[(N + 63) / 64] = {};
  RegisterState state_{};
};

template <class T, int N>
Handle<T> regs(Registers<T, N>& r) {
  return r.handle(0);
}
template <class T>
Handle<T> regs(Handle<T> h) {
  return h;
}
template <class T>
Handle<T> regs(T* p) {
  return Handle<T>{p, nullptr, 0};
}
template <class T>
Handle<T> regs(const T* p) {
  return Handle<T>{const_cast<T*>(p), nullptr, 0};
}
}  // namespace wl::emu
namespace wl {
template <class T, int N>
emu::Handle<T> at(emu::Registers<T, N>& r, int i) {
  return r.handle(i);
}
template <class T>
emu::Handle<T> at(emu::Handle<T> h, int i) {
  return emu::Handle<T>{h.data + i, h.state, h.at + i};
}
template <class T>
emu::Handle<T> at(T* p, int i) {
  return emu::Handle<T>{p + i, nullptr, 0};
}
}  // namespace wl
