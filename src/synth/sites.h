// Sites: every statement of a program with where it stands, flattened once so that the passes of synthesis are plain loops.
#pragma once
#include "base/error.h"
#include "tile/program.h"
namespace warploom::synth {
struct Site {
  const tile::Statement* statement = nullptr;
  int role = -1;                    // index in the Roles statement; -1: all threads
  int first = 0, threads = 0;       // the threads that run it: the first one's number, and how many
  tile::PipelineId producing = -1;  // inside Produce of this pipeline
};
std::vector<Site> sites_of(const tile::Program& program);

// Whether a pipeline's producer and consumer are different roles (true) or one thread of control (false).
bool is_between_roles(const std::vector<Site>& sites, tile::PipelineId pipeline);

// The tiles of a copy by where they lie, and whether the data leaves memory: global before shared, shared before registers.
struct Sides {
  const tile::Tile *global = nullptr, *shared = nullptr, *registers = nullptr;
  bool load = false;
};
Sides sides_of(const tile::Program& program, const tile::Copy& copy);

// What is known of an index expression before a kernel runs: bounds and divisors, from the grid and the loops around it.
//
//   ranges.enter(loop of k in 0 .. 1024 step 256);  ranges.of(k + 256)  → [256, 1024]    ranges.divisible(k * 3, 256)  → true
struct Range {
  std::int64_t low = 0, high = 0;  // both included; of what is not known, far beyond any address
};

class IndexRanges {
 public:
  explicit IndexRanges(const tile::Program& program);
  void enter(const tile::For& loop);
  void leave(const tile::For& loop) { loops_.erase(loop.variable); }
  Range of(const tile::Index& index) const;
  bool divisible(const tile::Index& index, std::int64_t by) const;

 protected:
  struct Loop {
    Range range;
    tile::Index begin = 0, step = 1;
  };
  std::map<std::string, Loop> loops_;
};

// The bounds wherever an index stands: a loop's variable has those of all loops of its name.
struct Bounds : IndexRanges {
  explicit Bounds(const tile::Program& program);
  // Whether the tile may reach outside its tensor along a dimension.
  bool may_exceed(const tile::Program& program, const tile::Tile& tile, int dim) const;
};

// The first statement that names a tensor; nothing where none does.
const tile::Statement* first_use(const std::vector<Site>& sites, tile::TensorId tensor);

std::string place_of_use(const tile::Program& program, tile::TensorId tensor);  // of the first; else the program

// resource-limit where tensors take more than `most` bytes, at the first use of the largest.
Error too_much(const tile::Program& program, const std::map<tile::TensorId, std::int64_t>& bytes, std::string message,
               std::int64_t most, std::int64_t all, std::string remedy);

// The dimension of `mine` along which neighbours are those along `dim` of `other`, where the two tiles meet in a copy.
std::optional<int> met_by(const tile::Tile& mine, const tile::Tile& other, std::optional<int> dim);

// The dimension of a global tensor whose elements are neighbours in memory, if any.
std::optional<int> contiguous_dim(const tile::Tensor& tensor);

// The most elements of a global tile that one access may move along the contiguous dimension: a power of two whose accesses are
// aligned and never straddle the tensor's edge.
int vector_limit(const tile::Program& program, const Bounds& bounds, const tile::Tile& tile, int max_bytes);
}  // namespace warploom::synth
