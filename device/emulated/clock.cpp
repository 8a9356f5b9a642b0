#include "clock.h"
#include <algorithm>
namespace wl::emu {
__attribute__((target_clones("avx2", "default"))) void raise_to(Epoch* dst, const Epoch* src, int n) {
  for (int i = 0; i < n; ++i) dst[i] = dst[i] > src[i] ? dst[i] : src[i];
}
namespace {
Clock copy_of(const Clock& c, int n) {
  Clock r(n);
  if (auto* d = c.get()) {
    std::copy_n(d->known(), d->n, r.get()->known());
    std::copy_n(d->fenced(), d->n, r.get()->fenced());
  }
  return r;
}

struct LastJoin {
  Clock a, b, result;
};
struct LastActor {
  Clock base, result;
  int actor = -1;
  Epoch known = 0, fenced = 0;
};
thread_local LastJoin last_join[2];
thread_local int join_turn = 0;
thread_local LastActor last_actor;
}  // namespace
Clock join(const Clock& a, const Clock& b) {
  if (a == b || !b.get()) return a;
  if (!a.get()) return b;
  for (const LastJoin& l : last_join)
    if (l.a == a && l.b == b) return l.result;
  Clock r = copy_of(a, std::max(a.size(), b.size()));
  raise_to(r.get()->known(), b.get()->known(), b.size());
  raise_to(r.get()->fenced(), b.get()->fenced(), b.size());
  last_join[join_turn ^= 1] = {a, b, r};
  return r;
}

Clock with_actor(const Clock& c, int actor, Epoch known, Epoch fenced) {
  LastActor& l = last_actor;
  if (l.result.get() && l.base == c && l.actor == actor && l.known == known && l.fenced == fenced) return l.result;
  Clock r = copy_of(c, std::max(c.size(), actor + 1));
  Epoch& k = r.get()->known()[actor];
  Epoch& f = r.get()->fenced()[actor];
  k = std::max(k, known);
  f = std::max(f, fenced);
  l = {c, r, actor, known, fenced};
  return r;
}

void ClockBuilder::grow(int n) {
  if (static_cast<int>(known_.size()) >= n) return;
  known_.resize(static_cast<std::size_t>(n));
  fenced_.resize(static_cast<std::size_t>(n));
}
void ClockBuilder::add(const Clock& c) {
  if (!c.get() || last_[0] == c || last_[1] == c) return;
  last_[1] = std::move(last_[0]);
  last_[0] = c;
  grow(c.size());
  raise_to(known_.data(), c.get()->known(), c.size());
  raise_to(fenced_.data(), c.get()->fenced(), c.size());
}
void ClockBuilder::raise(int actor, Epoch known, Epoch fenced) {
  grow(actor + 1);
  const auto i = static_cast<std::size_t>(actor);
  known_[i] = std::max(known_[i], known);
  fenced_[i] = std::max(fenced_[i], fenced);
}
Clock ClockBuilder::take() {
  Clock r(static_cast<int>(known_.size()));
  std::copy(known_.begin(), known_.end(), r.get()->known());
  std::copy(fenced_.begin(), fenced_.end(), r.get()->fenced());
  std::fill(known_.begin(), known_.end(), 0u);
  std::fill(fenced_.begin(), fenced_.end(), 0u);
  last_[0] = last_[1] = Clock();
  return r;
}
}  // namespace wl::emu
