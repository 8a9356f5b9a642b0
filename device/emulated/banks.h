// Wavefronts of shared-memory instructions: how often the 32 banks of 4 bytes have to serve, and
// how often they would if no two words met in a bank. A wavefront serves one word of each bank, to
// any number of lanes. Accesses of 8 and 16 bytes are served a half and a quarter of the warp at a
// time.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include "emulator.h"

namespace wl::emu {
class Banks {
 public:
  // One lane's access. Lanes run one by one: the k-th access of each lane of a warp at a line is
  // the k-th instruction there.
  void access(const void* warp, int lane, unsigned addr, int bytes, int line) {
    Line& l = lines_[{warp, line}];
    l.bytes = bytes;
    const size_t k = l.seen[lane]++ - l.done;
    if (k >= l.rows.size()) l.rows.resize(k + 1);
    l.rows[k].addr[lane] = addr;
    l.rows[k].lanes |= 1u << lane;
    for (; !l.rows.empty() && l.rows.front().lanes == ~0u; l.rows.pop_front(), ++l.done)
      instruction(l.rows.front().addr, ~0u, bytes, line);
  }

  // Accesses of a whole instruction: lanes with a bit in `lanes`.
  void instruction(const unsigned* addr, uint32_t lanes, int bytes, int line) {
    warploom::emulator::BankUse& u = use[line];
    ++u.instructions;
    const int together = bytes <= 4 ? 32 : 128 / bytes;
    for (int first = 0; first < 32; first += together) {
      std::set<unsigned> words;
      for (int l = first; l < first + together; ++l)
        for (int b = 0; b < bytes && lanes >> l & 1; b += 4)
          words.insert((addr[l] + static_cast<unsigned>(b)) / 4);
      int in_bank[32] = {};
      for (const unsigned word : words)
        ++in_bank[word % 32];
      u.wavefronts += *std::max_element(in_bank, in_bank + 32);
      u.least += static_cast<int64_t>((words.size() + 31) / 32);
    }
  }

  // The warps are done: what lacks lanes was executed by a part of a warp.
  void finish() {
    for (const auto& [key, line] : lines_)
      for (const Row& row : line.rows)
        instruction(row.addr, row.lanes, line.bytes, key.second);
    lines_.clear();
  }

  std::map<int, warploom::emulator::BankUse> use;

 private:
  struct Row {
    unsigned addr[32];
    uint32_t lanes = 0;
  };

  struct Line {
    int bytes = 0;
    uint32_t seen[32] = {};  // accesses of each lane
    uint32_t done = 0;       // instructions counted
    std::deque<Row> rows;
  };

  std::map<std::pair<const void*, int>, Line> lines_;
};
}  // namespace wl::emu
