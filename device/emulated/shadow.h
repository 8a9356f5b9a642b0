// What is known of each 4 bytes of shared memory or of a writable allocation: who wrote them last,
// who has read them since, which bytes hold a value. Sixteen bytes share one cell for as long as
// every access is to all of them.
#pragma once
#include <algorithm>
#include <array>
#include "clock.h"

namespace wl::emu {
struct Access {
  Epoch epoch = 0;
  uint16_t actor = 0;
  uint16_t line = 0;
  uint16_t wave = 0;          // of blocks that run together; nothing is known of what others did
  uint8_t mask = 0;           // bytes of the cell; 0: no access
  bool async : 1 = false;     // by the asynchronous proxy
  bool combined : 1 = false;  // by red_add or its like
};

inline Access access_by(int actor, Epoch epoch, int line, bool async = false) {
  return {epoch, static_cast<uint16_t>(actor), static_cast<uint16_t>(line), 0, 0, async};
}

struct Cell {
  Access write[2];  // two, since neighbouring 16-bit elements often belong to different threads
  Access read[3];
  uint8_t filled = 0;   // bytes that hold a value
  uint8_t barrier = 0;  // part of an mbarrier
  uint16_t more = 0;    // index of further readers, 0 if none
};

// What is wrong with an access: the hazard's kind, words between the access and the other actor.
struct Conflict {
  const char* kind;
  const char* text;
};

inline constexpr Conflict kRaceWithWrite = {"race", " unordered with the write by "};
inline constexpr Conflict kRaceWithRead = {"race", " unordered with the read by "};
inline constexpr Conflict kUnfenced = {
    "proxy-fence", " asynchronously, without fence_async_shared after the write by "};
inline constexpr Conflict kUnfencedRead = {
    "proxy-fence", " asynchronously, without fence_async_shared after the read by "};
inline constexpr Conflict kUninitialised = {"uninitialised", ", which was never written"};
inline constexpr Conflict kBarrier = {"mbarrier", ", which holds an mbarrier"};

class Shadow {
 public:
  void reset(size_t bytes, bool filled = false) {
    const uint8_t mask = filled ? 15 : 0;
    alike_.assign((bytes + 15) / 16, Cell{.filled = mask});
    apart_.assign(alike_.size(), 0);
    cells_.assign(1, {});
    more_.assign(1, {});
  }

  // The cell of sixteen bytes from 16 i on, or null where its four have gone apart; cell i of four
  // bytes, which so goes apart.
  Cell* alike(size_t i) { return apart_[i] > 0 ? nullptr : &alike_[i]; }

  Cell& cell(size_t i) {
    int32_t& at = apart_[i / 4];
    if (at <= 0) part(alike_[i / 4], at);
    return cells_[static_cast<size_t>(at)][i % 4];
  }

  // The sixteen bytes have been written at once: their cells are alike again.
  void unite(size_t i) {
    int32_t& at = apart_[i];
    auto& four = cells_[static_cast<size_t>(at)];
    if (std::ranges::any_of(four, &Cell::barrier)) return;
    std::swap(alike_[i], four[0]);
    at = -at;
  }

  // Checks and records one access to `mask` of a cell. The first conflict found, if any.
  struct Found {
    const Conflict* conflict = nullptr;
    Access other;

    void operator()(const Conflict& what, const Access& with) {
      if (!conflict) *this = {&what, with};
    }
  };

  Found read(Cell& c, uint8_t mask, const View& view, const Access& me) {
    Found report;
    for (const Access& w : c.write) {
      if (!(w.mask & mask)) continue;
      if (!before(w, view, me))
        report(kRaceWithWrite, w);
      else if (me.async && !w.async && !view.sees_fenced(w.actor, w.epoch))
        report(kUnfenced, w);
    }
    if (c.barrier) report(kBarrier, {});
    if ((c.filled & mask) != mask) report(kUninitialised, {});
    add_reader(c, mask, view, me);
    return report;
  }

  Found write(Cell& c, uint8_t mask, const View& view, const Access& me) {
    Found report;
    auto replace = [&](Access& a, bool was_write) {
      if (!(a.mask & mask)) return;
      if (!(a.combined && me.combined) && !before(a, view, me))
        report(was_write ? kRaceWithWrite : kRaceWithRead, a);
      else if (me.async && !a.async && !view.sees_fenced(a.actor, a.epoch))
        report(was_write ? kUnfenced : kUnfencedRead, a);
      a.mask = static_cast<uint8_t>(a.mask & ~mask);
    };
    for (Access& w : c.write)
      replace(w, true);
    for (Access& r : c.read)
      replace(r, false);
    if (c.more) {
      for (Access& r : more_[c.more])
        replace(r, false);
      std::erase_if(more_[c.more], [](const Access& r) { return !r.mask; });
    }
    if (c.barrier) report(kBarrier, {});
    if (me.combined && (c.filled & mask) != mask) report(kUninitialised, {});
    Access& slot = slot_for_write(c);
    slot = me;
    slot.mask = mask;
    c.filled |= mask;
    return report;
  }

  bool empty() const { return alike_.empty(); }

 private:
  // One that is free, else the older.
  static Access& slot_for_write(Cell& c) {
    if (!c.write[0].mask) return c.write[0];
    if (!c.write[1].mask) return c.write[1];
    return c.write[c.write[0].epoch > c.write[1].epoch];
  }

  void part(Cell& all, int32_t& at) {
    if (at == 0) {
      cells_.emplace_back();
      at = 1 - static_cast<int32_t>(cells_.size());
    }
    at = -at;
    auto& four = cells_[static_cast<size_t>(at)];
    std::swap(four[0], all);  // with its list: there are never more lists than words
    for (int i = 1; i < 4; ++i) {
      four[i].more = std::exchange(four[i], four[0]).more;
      if ((four[i].more || !more_[four[0].more].empty()) && has_list(four[i]))
        more_[four[i].more] = more_[four[0].more];
    }
  }

  static bool before(const Access& a, const View& view, const Access& me) {
    return a.wave == me.wave && view.knows(a.actor, a.epoch);
  }

  bool has_list(Cell& c) {  // made where there is room for one
    if (!c.more && more_.size() < 65535) {
      more_.emplace_back();
      c.more = static_cast<uint16_t>(more_.size() - 1);
    }
    return c.more;
  }

  void add_reader(Cell& c, uint8_t mask, const View& view, Access me) {
    me.mask = mask;
    Access* free = nullptr;
    const auto tells = [&](const Access& r) {
      return r.wave != me.wave && (r.mask & mask) == mask;
    };  // of any later write
    if (std::ranges::any_of(c.read, tells) || (c.more && std::ranges::any_of(more_[c.more], tells)))
      return;
    const auto again = [&](Access& r) {  // the same reader
      const bool same_thread = r.wave == me.wave && r.actor == me.actor;
      const bool same = r.mask && same_thread && r.async == me.async;
      if (same) {
        r.mask |= mask;
        r.epoch = me.epoch;
        r.line = me.line;
      }
      return same;
    };
    for (Access& r : c.read) {
      if (again(r)) return;
      // A reader that happened before me is covered by me: who comes after me comes after it.
      if (!free && (!r.mask || ((r.mask & ~mask) == 0 && before(r, view, me)))) free = &r;
    }
    if (free) {
      *free = me;
      return;
    }
    if (!has_list(c)) return;
    if (std::ranges::none_of(more_[c.more], again)) more_[c.more].push_back(me);
  }

  std::vector<Cell> alike_;     // one for sixteen bytes
  std::vector<int32_t> apart_;  // for sixteen bytes: their place in cells_, negative while
                                // alike, 0 before it is needed
  std::vector<std::array<Cell, 4>> cells_;
  std::vector<std::vector<Access>> more_;
};
}  // namespace wl::emu
