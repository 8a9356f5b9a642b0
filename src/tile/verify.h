// The rules of the language, checked on a finished program: every tile inside its tensor's rank,
// shapes that agree, scopes that a statement allows, pipelines produced and consumed the right way,
// roles that meet only through pipelines, names unique, grid a multiple of the cluster. The error
// is kTileInvalid, its place the statement's source line.
#pragma once
#include "base/error.h"
#include "tile/program.h"

namespace warploom::tile {
Status verify(const Program& program);

// For the files of the verifier: kTileInvalid at a statement, or at the program where there is
// none.
tl::unexpected<Error> invalid(const Program& program, const Location* location,
                              const std::string& message, const std::string& expected = {},
                              const std::string& found = {});
bool is_identifier(
    std::string_view name);  // a C identifier that no emitted source needs for itself
bool is_grid_variable(std::string_view name);  // block_x, block_y, block_z, cluster_rank
// Each statement: indices in scope, tiles inside tensors, scopes, shapes and types that agree,
// pipelines opened once.
Status verify_statements(const Program& program);
}  // namespace warploom::tile
