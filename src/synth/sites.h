// Sites: every statement of a program with where it stands, flattened once so that the passes of synthesis are plain loops.
#pragma once
#include <optional>
#include <utility>
#include <vector>
#include "tile/program.h"
namespace warploom::synth {
struct Site {
  const tile::Statement* statement = nullptr;
  int role = -1;                    // index in the Roles statement; -1: all threads
  int first = 0, threads = 0;       // the threads that run it: the first one's number, and how many
  tile::PipelineId producing = -1;  // inside Produce of this pipeline
  tile::PipelineId consuming = -1;
};
std::vector<Site> sites_of(const tile::Program& program);

// Whether a pipeline's producer and consumer are different roles (true) or one thread of control (false).
bool is_between_roles(const std::vector<Site>& sites, tile::PipelineId pipeline);

// The first statement that names a tensor; nothing where none does.
const tile::Statement* first_use(const std::vector<Site>& sites, tile::TensorId tensor);

std::string text_of(const std::vector<std::int64_t>& extent);  // "[64, 32]"

// The dimension of `mine` along which neighbours are those along `dim` of `other`, where the two tiles meet in a copy.
std::optional<int> met_by(const tile::Tile& mine, const tile::Tile& other, std::optional<int> dim);

// The dimension of a global tensor whose elements are neighbours in memory, if any.
std::optional<int> contiguous_dim(const tile::Tensor& tensor);

// Upper bound of an index expression, given the program's grid and the constant bounds of its loops.
class Bounds {
 public:
  explicit Bounds(const tile::Program& program);
  std::optional<std::pair<std::int64_t, std::int64_t>> range(const tile::Index& index) const;  // [smallest, largest]
  // Whether the tile may reach outside its tensor along a dimension.
  bool may_exceed(const tile::Program& program, const tile::Tile& tile, int dim) const;

 private:
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> variables_;
  void collect(const tile::Body& body);
};

// The most elements of a global tile that one access may move along the contiguous dimension: a power of two whose accesses are
// aligned and never straddle the tensor's edge.
int vector_limit(const tile::Program& program, const Bounds& bounds, const tile::Tile& tile, int max_bytes);
}  // namespace warploom::synth
