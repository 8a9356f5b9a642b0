// What is known of each 4 bytes of shared memory: who wrote them last, who has read them since, which bytes hold a value.
#pragma once
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
  void reset(int bytes);
  // Checks and records one access to `mask` of cell i. The first conflict found, if any.
  struct Found {
    const Conflict* conflict = nullptr;
    Access other;
    void operator()(const Conflict& what, const Access& with) {
      if (!conflict) *this = {&what, with};
    }
  };
  Found read(int i, std::uint8_t mask, const View& view, const Access& me);
  Found write(int i, std::uint8_t mask, const View& view, const Access& me);
  Cell& cell(int i) { return cells_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(cells_.size()); }

 private:
  void add_reader(Cell& c, std::uint8_t mask, const View& view, Access me);
  std::vector<Cell> cells_;
  std::vector<std::vector<Access>> more_;
};
}  // namespace wl::emu
