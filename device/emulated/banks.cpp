#include "banks.h"
#include <algorithm>
#include <set>
namespace wl::emu {
void Banks::instruction(const unsigned* addr, std::uint32_t lanes, int bytes, int line) {
  warploom::emulator::BankUse& u = use[line];
  ++u.instructions;
  const int together = bytes <= 4 ? 32 : 128 / bytes;
  for (int first = 0; first < 32; first += together) {
    std::set<unsigned> words;
    for (int l = first; l < first + together; ++l)
      for (int b = 0; b < bytes && lanes >> l & 1; b += 4) words.insert((addr[l] + static_cast<unsigned>(b)) / 4);
    int in_bank[32] = {};
    for (const unsigned word : words) ++in_bank[word % 32];
    u.wavefronts += *std::max_element(in_bank, in_bank + 32);
    u.least += static_cast<std::int64_t>((words.size() + 31) / 32);
  }
}

void Banks::access(const void* warp, int lane, unsigned addr, int bytes, int line) {
  Line& l = lines_[{warp, line}];
  l.bytes = bytes;
  const std::size_t k = l.seen[lane]++ - l.done;
  if (k >= l.rows.size()) l.rows.resize(k + 1);
  l.rows[k].addr[lane] = addr;
  l.rows[k].lanes |= 1u << lane;
  for (; !l.rows.empty() && l.rows.front().lanes == ~0u; l.rows.pop_front(), ++l.done)
    instruction(l.rows.front().addr, ~0u, bytes, line);
}

void Banks::finish() {
  for (const auto& [key, line] : lines_)
    for (const Row& row : line.rows) instruction(row.addr, row.lanes, line.bytes, key.second);
  lines_.clear();
}
}  // namespace wl::emu
