// What the files of the verifier share: where a check stands in the program, and the rules, each a small function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tile/program.h"

namespace warploom::tile {

// The place of the statement under check: what encloses it.
struct Context {
  const Program& program;
  const Location* location = nullptr;      // of the innermost statement
  std::vector<std::string> loops = {};     // variables in scope, outermost first
  std::vector<PipelineId> producing = {};  // Produce and Consume around, outermost first
  std::vector<PipelineId> consuming = {};
  bool divergent = false;  // blocks of one cluster may disagree on whether they get here
};

// An error of code kTileInvalid at the context's statement, or at a declaration where there is none.
tl::unexpected<Error> invalid(const Context& context, std::string message, std::string expected = {},
                              std::string found = {});
tl::unexpected<Error> invalid_declaration(const Program& program, std::string_view what, std::string message);

bool is_identifier(std::string_view name);  // a C identifier that no emitted source needs for itself
std::string shape_text(const std::vector<std::int64_t>& shape);  // "[128, 64]"
bool is_grid_variable(std::string_view name);                    // block_x, block_y, block_z, cluster_rank

// Names, shapes, strides, grid, cluster, pipelines: everything above the statements.
Status verify_declarations(const Program& program);
// One statement without its body: scopes, shapes, types, indices.
Status verify_statement(const Context& context, const Statement& statement);
Status verify_index(const Context& context, const Index& index);
bool differs_in_cluster(const Program& program, const Index& index);
// What roles and pipelines ask of the program as a whole.
Status verify_sharing(const Program& program);

}  // namespace warploom::tile
