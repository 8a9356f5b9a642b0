#include "clock.h"
#include <algorithm>
namespace wl::emu {
namespace {
__attribute__((target_clones("avx2", "default"))) void raise_to(Epoch* dst, const Epoch* src, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = dst[i] > src[i] ? dst[i] : src[i];
}

struct LastJoin {
  Clock a, b, result;
};
struct LastActor {
  Clock base, result;
  int actor = -1;
  Epoch epoch = 0;
};
thread_local LastJoin last_join[2];
thread_local int join_turn = 0;
thread_local LastActor last_actor;
}  // namespace
Clock join(const Clock& a, const Clock& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  for (const LastJoin& l : last_join)
    if (l.a == a && l.b == b) return l.result;
  ClockBuilder both;
  both.add(a);
  both.add(b);
  return (last_join[join_turn ^= 1] = {a, b, both.take()}).result;
}

Clock with_actor(const Clock& c, int actor, Epoch epoch) {
  LastActor& l = last_actor;
  if (l.result && l.base == c && l.actor == actor && l.epoch == epoch) return l.result;
  ClockBuilder more;
  more.add(c);
  more.raise(actor, epoch, epoch);
  return (l = {c, more.take(), actor, epoch}).result;
}

void ClockBuilder::add(const Clock& c) {
  if (!c || last_[0] == c || last_[1] == c) return;
  last_[1] = std::exchange(last_[0], c);
  seen_.resize(std::max(seen_.size(), c->size()));
  raise_to(&seen_.data()->known, &c->data()->known, 2 * c->size());
}
void ClockBuilder::raise(int actor, Epoch known, Epoch fenced) {
  const auto i = static_cast<std::size_t>(actor);
  seen_.resize(std::max(seen_.size(), i + 1));
  seen_[i] = {std::max(seen_[i].known, known), std::max(seen_[i].fenced, fenced)};
}
Clock ClockBuilder::take() {
  last_[0] = last_[1] = Clock();
  return boost::make_local_shared<const std::vector<Seen>>(std::exchange(seen_, std::vector<Seen>(seen_.size())));
}
}  // namespace wl::emu
