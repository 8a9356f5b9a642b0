// Wavefronts of shared-memory instructions: how often the 32 banks of 4 bytes have to serve, and how often they would if no two
// words met in a bank. A wavefront serves one word of each bank, to any number of lanes. Accesses of 8 and 16 bytes are served a
// half and a quarter of the warp at a time.
#pragma once
#include <deque>
#include "emulator.h"
namespace wl::emu {
class Banks {
 public:
  // One lane's access. Lanes run one by one: the k-th access of each lane of a warp at a line is the k-th instruction there.
  void access(const void* warp, int lane, unsigned addr, int bytes, int line);
  // Accesses of a whole instruction: lanes with a bit in `lanes`.
  void instruction(const unsigned* addr, std::uint32_t lanes, int bytes, int line);
  void finish();  // the warps are done: what lacks lanes was executed by a part of a warp
  std::map<int, warploom::emulator::BankUse> use;

 private:
  struct Row {
    unsigned addr[32];
    std::uint32_t lanes = 0;
  };
  struct Line {
    int bytes = 0;
    std::uint32_t seen[32] = {};  // accesses of each lane
    std::uint32_t done = 0;       // instructions counted
    std::deque<Row> rows;
  };
  std::map<std::pair<const void*, int>, Line> lines_;
};
}  // namespace wl::emu
