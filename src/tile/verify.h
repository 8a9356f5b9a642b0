// The rules of the language, checked on a finished program: every tile inside its tensor's rank, shapes that agree, scopes that
// a statement allows, pipelines produced and consumed the right way, roles that meet only through pipelines, names unique, grid
// a multiple of the cluster. The error is kTileInvalid, its place the statement's source line.
#pragma once

#include "base/error.h"
#include "tile/program.h"

namespace warploom::tile {

Status verify(const Program& program);

}  // namespace warploom::tile
