// Vector clocks. An actor is anything that acts in its own order: a CUDA thread, the copies that complete on one mbarrier,
// the wgmma groups of one warpgroup, the cp.async or bulk groups of one thread. A clock holds, for each actor, how much of
// its work has happened before, and how much of that has also been made visible to the asynchronous proxy by a fence.
//
// Clocks are immutable and shared: after a barrier all threads hold the same one, so that joining costs one pointer
// comparison. What a thread alone knows about itself lies beside it in Private entries.
#pragma once
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <cstdlib>
#include <vector>
namespace wl::emu {
using Epoch = std::uint32_t;

void raise_to(Epoch* dst, const Epoch* src, int n);  // elementwise maximum

class Clock {
 public:
  struct Data {
    int refs;
    int n;
    Epoch* known() { return reinterpret_cast<Epoch*>(this + 1); }
    Epoch* fenced() { return known() + n; }
    friend void intrusive_ptr_add_ref(Data* data) { ++data->refs; }
    friend void intrusive_ptr_release(Data* data) {
      if (--data->refs == 0) std::free(data);
    }
  };
  Clock() = default;
  explicit Clock(int n)
      : data_(static_cast<Data*>(std::calloc(1, sizeof(Data) + sizeof(Epoch) * 2 * static_cast<std::size_t>(n)))) {
    data_->n = n;
  }
  Data* get() const { return data_.get(); }
  int size() const { return data_ ? data_->n : 0; }
  friend bool operator==(const Clock& a, const Clock& b) { return a.data_ == b.data_; }

 private:
  boost::intrusive_ptr<Data> data_;
};

Clock join(const Clock& a, const Clock& b);                              // remembers the last pair
Clock with_actor(const Clock& c, int actor, Epoch known, Epoch fenced);  // likewise

// A clock under construction: what a barrier gathers.
class ClockBuilder {
 public:
  void add(const Clock& c);
  void raise(int actor, Epoch known, Epoch fenced);
  Clock take();  // the result; starts afresh

 private:
  void grow(int n);
  std::vector<Epoch> known_, fenced_;
  Clock last_[2];
};

struct Private {
  int actor;
  Epoch known, fenced;
};

// What an access may rely on.
struct View {
  const Epoch* known = nullptr;
  const Epoch* fenced = nullptr;
  int n = 0;
  const Private* own = nullptr;
  int owns = 0;
  View() = default;
  View(const Clock& c, const Private* p, int count) : own(p), owns(count) {
    if (!c.get()) return;
    known = c.get()->known();
    fenced = c.get()->fenced();
    n = c.get()->n;
  }
  bool knows(int actor, Epoch e) const { return holds(known, &Private::known, actor, e); }
  bool sees_fenced(int actor, Epoch e) const { return holds(fenced, &Private::fenced, actor, e); }

 private:
  bool holds(const Epoch* shared, Epoch Private::*alone, int actor, Epoch e) const {
    if (actor < n && shared[actor] >= e) return true;
    for (int i = 0; i < owns; ++i)
      if (own[i].actor == actor) return own[i].*alone >= e;
    return false;
  }
};
}  // namespace wl::emu
