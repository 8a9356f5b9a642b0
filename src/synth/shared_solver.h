// The pass that gives shared tensors their layouts (shared.cpp) and copies their instructions
// (copies.cpp, tma_copy.cpp). Private to this room.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "synth/solve.h"

namespace warploom::synth {
using layout::MemoryLayout, layout::SharedAccess;

// The widest swizzle atom (128, 64 or 32 bytes) that divides rows of so many bytes; 0 where none
// does.
int64_t swizzle_atom_of(int64_t bytes);

// A use of a shared tensor by one statement.
struct Use {
  const Site* site;
  const Tile* shared;           // the box of the shared tensor
  const Tile* other = nullptr;  // copies: the other side
  const Mma* mma = nullptr;
  size_t k_dim = 0;  // mma: which dimension of the shared tensor is k
};

// What an instruction asks of a copy and does not get.
struct Unmet {
  std::string expected;
  std::string found;
};

class SharedSolver : SynthesisContext {
 public:
  SharedSolver(const SynthesisContext& question, Solution& solution)
      : SynthesisContext(question), solution_(solution) {}

  Status run();

 private:
  Scope scope_of(const Tile& tile) const { return program.tensor(tile.tensor).scope; }

  const Instruction* row_of(Method method, const Copy& copy, bool transpose = false) const;
  std::vector<Use> uses_of(TensorId id) const;
  static tile::StatementId first_user(const std::vector<Use>& uses);
  // The first demand of tma that a copy does not meet; nothing where tma can carry it out.
  std::optional<Unmet> tma_lacks(const Site& site, const Copy& copy) const;
  std::optional<size_t> met_contiguous(const Use& use) const;
  bool has_strided_views(TensorId id) const;
  Status solve(TensorId id);
  const Instruction& matrix_of(const Use& use) const;
  std::string quoted(const Use& use) const;
  Status solve_swizzle_atoms(TensorId id, const Tensor& tensor, const std::vector<Use>& uses,
                             const Use* engine, const Use* matrix);
  Status solve_free(TensorId id, const Tensor& tensor, const std::vector<Use>& uses);
  std::vector<SharedAccess> accesses_of(const std::vector<Use>& uses, const MemoryLayout& layout,
                                        size_t contiguous, double& cost) const;
  std::pair<const Instruction*, int> matrix_row(const Copy& copy, const TvLayout& tv,
                                                const MemoryLayout& layout,
                                                size_t contiguous) const;
  Status choose(const Site& site, const Copy& copy, const Sides& sides);
  void choose_vectors(const Copy& copy, const Sides& sides, InstructionChoice& choice) const;
  tl::unexpected<Error> cannot_fill(const Site& site, const Unmet& lack) const;
  Status choose_between(const Site& site, const Copy& copy, const Sides& sides,
                        InstructionChoice& choice) const;
  Status check_bytes(const Site& site, const Tile& tile, const InstructionChoice& choice) const;
  Status choose_conversion(const Site& site, const ConvertLayout& node);

  Solution& solution_;
};
}  // namespace warploom::synth
