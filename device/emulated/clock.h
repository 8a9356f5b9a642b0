// Vector clocks. An actor is anything that acts in its own order: a CUDA thread, the copies that complete on one mbarrier,
// the wgmma groups of one warpgroup, the cp.async or bulk groups of one thread. A clock holds, for each actor, how much of
// its work has happened before, and how much of that has also been made visible to the asynchronous proxy by a fence.
//
// Clocks are immutable and shared: after a barrier all threads hold the same one, so that joining costs one pointer
// comparison. What a thread alone knows about itself lies beside it in Private entries.
#pragma once
#include <boost/smart_ptr/make_local_shared.hpp>
#include <cstdint>
#include <vector>
namespace wl::emu {
using Epoch = std::uint32_t;

struct Seen {  // of one actor
  Epoch known = 0, fenced = 0;
};
using Clock = boost::local_shared_ptr<const std::vector<Seen>>;  // by actor; null: nothing is known

// Of the same arguments the same clock, for a while.
Clock join(const Clock& a, const Clock& b);
Clock with_actor(const Clock& c, int actor, Epoch epoch);  // its work up to there, visible to all

// A clock under construction: what a barrier gathers.
class ClockBuilder {
 public:
  void add(const Clock& c);
  void raise(int actor, Epoch known, Epoch fenced);
  Clock take();  // the result; starts afresh

 private:
  std::vector<Seen> seen_;
  Clock last_[2];
};

struct Private {
  int actor;
  Epoch known, fenced;
};

// What an access may rely on.
struct View {
  const Seen* seen = nullptr;
  int n = 0;
  const Private* own = nullptr;
  int owns = 0;
  View(const Clock& c, const Private* p, int count)
      : seen(c ? c->data() : nullptr), n(c ? static_cast<int>(c->size()) : 0), own(p), owns(count) {}
  bool knows(int actor, Epoch e) const { return holds(&Seen::known, &Private::known, actor, e); }
  bool sees_fenced(int actor, Epoch e) const { return holds(&Seen::fenced, &Private::fenced, actor, e); }

 private:
  bool holds(Epoch Seen::*shared, Epoch Private::*alone, int actor, Epoch e) const {
    if (actor < n && seen[actor].*shared >= e) return true;
    for (int i = 0; i < owns; ++i)
      if (own[i].actor == actor) return own[i].*alone >= e;
    return false;
  }
};
}  // namespace wl::emu
