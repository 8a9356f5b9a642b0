#include "clock.h"
#include <algorithm>
#include <boost/smart_ptr/make_local_shared_object.hpp>
#include <cstddef>
#include <utility>
#include <vector>

namespace wl::emu {
namespace {
__attribute__((target_clones("avx2", "default"))) void raise_to(Epoch* dst, const Epoch* src,
                                                                size_t n) {
  for (size_t i = 0; i < n; ++i)
    dst[i] = dst[i] > src[i] ? dst[i] : src[i];
}

// Lately made. Threads that know the same so go on sharing one clock, though others act between
// them.
struct Made {
  Clock a;
  Clock b;
  int actor = -1;  // none
  Epoch epoch = 0;
  Clock result;
};

thread_local Made made[16];
thread_local unsigned turn = 0;

Clock made_of(const Clock& a, const Clock& b, int actor, Epoch epoch) {
  for (const Made& m : made)
    if (m.result && m.a == a && m.b == b && m.actor == actor && m.epoch == epoch) return m.result;
  ClockBuilder all;
  all.add(a);
  all.add(b);
  if (actor >= 0) all.raise(actor, epoch, epoch);
  Made& latest = made[turn++ % 16];
  latest = {a, b, actor, epoch, all.take()};
  return latest.result;
}
}  // namespace

Clock join(const Clock& a, const Clock& b) {
  if (a == b || !b) return a;
  return a ? made_of(a, b, -1, 0) : b;
}

Clock with_actor(const Clock& c, int actor, Epoch epoch) {
  return made_of(c, {}, actor, epoch);
}

void ClockBuilder::add(const Clock& c) {
  if (!c || last_[0] == c || last_[1] == c) return;
  last_[1] = std::exchange(last_[0], c);
  seen_.resize(std::max(seen_.size(), c->size()));
  raise_to(&seen_.data()->known, &c->data()->known, 2 * c->size());
}

void ClockBuilder::raise(int actor, Epoch known, Epoch fenced) {
  const auto i = static_cast<size_t>(actor);
  seen_.resize(std::max(seen_.size(), i + 1));
  Seen& seen = seen_[i];
  seen.known = std::max(seen.known, known);
  seen.fenced = std::max(seen.fenced, fenced);
}

Clock ClockBuilder::take() {
  last_[0] = last_[1] = Clock();
  std::vector<Seen> taken(seen_.size());
  std::swap(taken, seen_);
  return boost::make_local_shared<const std::vector<Seen>>(std::move(taken));
}
}  // namespace wl::emu
