// Vector clocks. An actor is anything that acts in its own order: a CUDA thread, the copies that
// complete on one mbarrier, the wgmma groups of one warpgroup, the cp.async or bulk groups of one
// thread. A clock holds, for each actor, how much of its work has happened before, and how much of
// that has also been made visible to the asynchronous proxy by a fence.
//
// Clocks are immutable and shared: after a barrier all threads hold the same one, so that joining
// costs one pointer comparison. What a thread alone knows about itself lies beside it in Private
// entries.
#pragma once
#include <algorithm>
#include <boost/smart_ptr/make_local_shared.hpp>
#include <cstdint>
#include <span>
#include <vector>

namespace wl::emu {
using Epoch = uint32_t;

struct Seen {  // of one actor
  Epoch known = 0;
  Epoch fenced = 0;
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

struct Private : Seen {
  int actor = -1;  // none yet
};

// What an access may rely on.
struct View {
  std::span<const Seen> seen;
  std::span<const Private> own;

  explicit View(const Clock& c, std::span<const Private> alone = {}) : own(alone) {
    if (c) seen = *c;
  }

  bool knows(int actor, Epoch e) const { return holds(&Seen::known, actor, e); }

  bool sees_fenced(int actor, Epoch e) const { return holds(&Seen::fenced, actor, e); }

 private:
  bool holds(Epoch Seen::* what, int actor, Epoch e) const {
    const auto i = static_cast<size_t>(actor);
    if (i < seen.size() && seen[i].*what >= e) return true;
    const auto knows = [&](const Private& p) { return p.actor == actor && p.*what >= e; };
    return std::ranges::any_of(own, knows);
  }
};
}  // namespace wl::emu
