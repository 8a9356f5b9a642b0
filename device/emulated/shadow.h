// What is known of each 4 bytes of shared memory: who wrote them last, who has read them since, which bytes hold a value.
#pragma once
#include <algorithm>
#include "clock.h"
namespace wl::emu {
struct Access {
  Epoch epoch = 0;
  std::uint16_t actor = 0;
  std::uint16_t line = 0;
  std::uint8_t mask = 0;  // bytes of the cell; 0: no access
  bool async = false;     // by the asynchronous proxy
};

inline Access access_by(int actor, Epoch epoch, int line, bool async = false) {
  return {epoch, static_cast<std::uint16_t>(actor), static_cast<std::uint16_t>(line), 0, async};
}

struct Cell {
  Access write[2];  // two, since neighbouring 16-bit elements often belong to different threads
  Access read[3];
  std::uint8_t filled = 0;   // bytes that hold a value
  std::uint8_t barrier = 0;  // part of an mbarrier
  std::uint16_t more = 0;    // index of further readers, 0 if none
};

// What is wrong with an access: the hazard's kind, words between the access and the other actor.
struct Conflict {
  const char *kind, *text;
};
inline constexpr Conflict kRaceWithWrite = {"race", " unordered with the write by "},
                          kRaceWithRead = {"race", " unordered with the read by "},
                          kUnfenced = {"proxy-fence", " asynchronously, without fence_async_shared after the write by "},
                          kUninitialised = {"uninitialised", ", which was never written"},
                          kBarrier = {"mbarrier", ", which holds an mbarrier"};

class Shadow {
 public:
  void reset(int bytes) {
    cells_.assign(static_cast<std::size_t>((bytes + 3) / 4), Cell{});
    more_.assign(1, {});
  }

  // Checks and records one access to `mask` of cell i. The first conflict found, if any.
  struct Found {
    const Conflict* conflict = nullptr;
    Access other;
    void operator()(const Conflict& what, const Access& with) {
      if (!conflict) *this = {&what, with};
    }
  };
  Found read(int i, std::uint8_t mask, const View& view, const Access& me) {
    Cell& c = cell(i);
    Found report;
    for (const Access& w : c.write) {
      if (!(w.mask & mask)) continue;
      if (!view.knows(w.actor, w.epoch)) report(kRaceWithWrite, w);
      else if (me.async && !w.async && !view.sees_fenced(w.actor, w.epoch)) report(kUnfenced, w);
    }
    if (c.barrier) report(kBarrier, {});
    if ((c.filled & mask) != mask) report(kUninitialised, {});
    add_reader(c, mask, view, me);
    return report;
  }

  Found write(int i, std::uint8_t mask, const View& view, const Access& me) {
    Cell& c = cell(i);
    Found report;
    auto replace = [&](Access& a, bool was_write) {
      if (!(a.mask & mask)) return;
      if (!view.knows(a.actor, a.epoch)) report(was_write ? kRaceWithWrite : kRaceWithRead, a);
      else if (was_write && me.async && !a.async && !view.sees_fenced(a.actor, a.epoch)) report(kUnfenced, a);
      a.mask = static_cast<std::uint8_t>(a.mask & ~mask);
    };
    for (Access& w : c.write) replace(w, true);
    for (Access& r : c.read) replace(r, false);
    if (c.more) {
      for (Access& r : more_[c.more]) replace(r, false);
      std::erase_if(more_[c.more], [](const Access& r) { return !r.mask; });
    }
    if (c.barrier) report(kBarrier, {});
    Access& slot = !c.write[0].mask ? c.write[0] : !c.write[1].mask ? c.write[1] : c.write[c.write[0].epoch > c.write[1].epoch];
    slot = me;
    slot.mask = mask;
    c.filled |= mask;
    return report;
  }

  Cell& cell(int i) { return cells_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(cells_.size()); }

 private:
  void add_reader(Cell& c, std::uint8_t mask, const View& view, Access me) {
    me.mask = mask;
    Access* free = nullptr;
    for (Access& r : c.read) {
      if (r.mask && r.actor == me.actor && r.async == me.async) {
        r.mask |= mask;
        r.epoch = me.epoch;
        r.line = me.line;
        return;
      }
      // A reader that happened before me is covered by me: who comes after me comes after it.
      if (!free && (!r.mask || ((r.mask & ~mask) == 0 && view.knows(r.actor, r.epoch)))) free = &r;
    }
    if (free) {
      *free = me;
      return;
    }
    if (!c.more) {
      if (more_.size() >= 65535) return;
      c.more = static_cast<std::uint16_t>(more_.size());
      more_.emplace_back();
    }
    auto& list = more_[c.more];
    for (Access& r : list) {
      if (r.actor == me.actor) {
        r.mask |= mask;
        r.epoch = me.epoch;
        return;
      }
    }
    list.push_back(me);
  }

  std::vector<Cell> cells_;
  std::vector<std::vector<Access>> more_;
};
}  // namespace wl::emu
