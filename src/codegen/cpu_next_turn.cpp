// Which copies read what an earlier loop of the same turn has read, and what they ask for instead.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/cpu_emitter.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
// What a loop reads by a copy, whatever its variable is called: the tensor, how much at once, where
// the first element lies, how far the loop and the one around go on from there.
using Read = std::tuple<TensorId, std::vector<int64_t>, int64_t, int64_t, int64_t>;

class NextTurns {
 public:
  NextTurns(const Program& program, int64_t cache_bytes)
      : program_(program), most_bytes_(cache_bytes / 4) {}

  std::map<StatementId, int64_t> find() {
    for (const Statement& each : program_.body)
      tile::for_statements(each, [&](const Statement& statement) {
        if (const auto* loop = statement.as<tile::For>()) find_in(*loop);
      });
    return std::move(found_);
  }

 private:
  void find_in(const tile::For& around) {
    std::map<Read, std::vector<StatementId>> reads;
    for (const Statement& statement : around.body) {
      const auto* loop = statement.as<tile::For>();
      if (!loop) continue;
      for (const Statement& inner : loop->body) {
        const auto* copy = inner.as<Copy>();
        if (copy && copy->streaming && is_plain(copy->src))
          reads[read_of(*copy, around, *loop)].push_back(inner.id);
      }
    }
    for (const auto& [read, copies] : reads) {
      const int64_t apart = std::get<4>(read);
      const Dtype dtype = program_.tensor(std::get<0>(read)).dtype;
      const bool fits = bytes_of(dtype, std::abs(apart)) <= most_bytes_;
      if (copies.size() < 2 || apart == 0 || !fits) continue;
      for (const StatementId copy : copies)
        found_[copy] = copy == copies.back() ? apart : 0;
    }
  }

  bool is_plain(const tile::Tile& tile) const {
    return program_.tensor(tile.tensor).scope == Scope::global && tile.lookup < 0;
  }

  Read read_of(const Copy& copy, const tile::For& around, const tile::For& loop) const {
    tile::Index address = 0;
    const Tensor& tensor = program_.tensor(copy.src.tensor);
    for (size_t d = 0; d < tensor.strides.size(); ++d)
      address = address + copy.src.offset[d] * tensor.strides[d];
    const int64_t first = address.evaluate({});
    const int64_t next = address.evaluate({{loop.variable, 1}}) - first;
    const int64_t step = around.step.constant().value_or(1);
    const int64_t apart = address.evaluate({{around.variable, step}}) - first;
    return {copy.src.tensor, copy.src.extent, first, next, apart};
  }

  const Program& program_;
  int64_t most_bytes_;
  std::map<StatementId, int64_t> found_;
};
}  // namespace

std::map<StatementId, int64_t> next_turns_of(const Program& program, int64_t cache_bytes) {
  return NextTurns(program, cache_bytes).find();
}
}  // namespace warploom::codegen
