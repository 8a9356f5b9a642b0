// Sites: every statement of a program with where it stands, flattened once so that the passes of synthesis are plain loops.
#pragma once
#include "synth/ranges.h"
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

// The first statement that names a tensor; nothing where none does.
const tile::Statement* first_use(const std::vector<Site>& sites, tile::TensorId tensor);

std::string text_of(const std::vector<std::int64_t>& extent);  // "[64, 32]"

// The dimension of `mine` along which neighbours are those along `dim` of `other`, where the two tiles meet in a copy.
std::optional<int> met_by(const tile::Tile& mine, const tile::Tile& other, std::optional<int> dim);

// The dimension of a global tensor whose elements are neighbours in memory, if any.
std::optional<int> contiguous_dim(const tile::Tensor& tensor);

// The most elements of a global tile that one access may move along the contiguous dimension: a power of two whose accesses are
// aligned and never straddle the tensor's edge.
int vector_limit(const tile::Program& program, const Bounds& bounds, const tile::Tile& tile, int max_bytes);
}  // namespace warploom::synth
