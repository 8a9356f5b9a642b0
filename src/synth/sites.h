// Sites: every statement of a program with where it stands, flattened once so that the passes of
// synthesis are plain loops.
#pragma once
#include <map>
#include <optional>
#include "base/error.h"
#include "tile/program.h"

namespace warploom::synth {
using namespace tile;  // what synthesis asks is of programs throughout

struct Site {
  const Statement* statement = nullptr;
  int role = -1;  // index in the Roles statement; -1: all threads
  // the threads that run it: the first one's number, and how many
  int first = 0;
  int threads = 0;
  PipelineId producing = -1;  // inside Produce of this pipeline
};

std::vector<Site> sites_of(const Program& program);

// Whether a pipeline's producer and consumer are different roles (true) or one thread of control
// (false).
bool is_between_roles(const std::vector<Site>& sites, PipelineId pipeline);

// The tiles of a copy by where they lie, and whether the data leaves memory: global before shared,
// shared before registers.
struct Sides {
  const Tile* global = nullptr;
  const Tile* shared = nullptr;
  const Tile* registers = nullptr;
  bool load = false;
};

Sides sides_of(const Program& program, const Copy& copy);

// What is known of an index expression before a kernel runs: bounds and divisors, from the grid and
// the loops around it.
//
//   ranges.enter(loop of k in 0 .. 1024 step 256);  ranges.of(k + 256)  → [256, 1024]
//   ranges.divisible(k * 3, 256)  → true
struct Range {
  // both included; of what is not known, far beyond any address
  int64_t low = 0;
  int64_t high = 0;
};

class IndexRanges {
 public:
  explicit IndexRanges(const Program& program);
  void enter(const For& loop);  // to hold until another loop of its name: no index outside names
                                // its variable

  void enter(const std::string& variable, int64_t count) {
    loops_[variable] = {{0, count - 1}};
  }  // from 0 on

  Range of(const Index& index) const;
  bool divisible(const Index& index, int64_t by) const;

 protected:
  struct Loop {
    Range range;
    Index begin = 0;
    Index step = 1;
  };

  std::map<std::string, Loop> loops_;
};

// The bounds wherever an index stands: a loop's variable has those of all loops of its name.
struct Bounds : IndexRanges {
  explicit Bounds(const Program& program);
  // Whether the tile may reach outside its tensor along a dimension.
  bool may_exceed(const Program& program, const Tile& tile, size_t dim) const;
};

// The first statement that names a tensor; nothing where none does.
const Statement* first_use(const std::vector<Site>& sites, TensorId tensor);

// resource-limit where tensors take more than `most` bytes, at the first use of the largest.
tl::unexpected<Error> too_much(const Program& program, const std::map<TensorId, int64_t>& bytes,
                               const std::string& message, int64_t most, int64_t all,
                               const std::string& remedy);

// The dimension of `mine` along which neighbours are those along `dim` of `other`, where the two
// tiles meet in a copy.
std::optional<size_t> met_by(const Tile& mine, const Tile& other, std::optional<size_t> dim);

// The dimension of a global tensor whose elements are neighbours in memory, if any.
std::optional<size_t> contiguous_dim(const Tensor& tensor);

// The most elements of a global tile that one access, of 16 bytes at most, may move along the
// contiguous dimension: a power of two whose accesses are aligned and never straddle the tensor's
// edge.
int vector_limit(const Program& program, const Bounds& bounds, const Tile& tile);
}  // namespace warploom::synth
