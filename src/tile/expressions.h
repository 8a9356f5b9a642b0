// Expressions of the text form: indices, tiles and values, read from a cursor. docs/tile.md has the grammar.
#pragma once

#include "tile/lexer.h"
#include "tile/program.h"

namespace warploom::tile {

Result<Index> read_index(Cursor& cursor);
Result<TensorId> read_tensor(Cursor& cursor, const Program& program);
Result<Tile> read_tile(Cursor& cursor, const Program& program);  // "a" or "a[k * 64 +64, 0 +16]"
Result<Value> read_value(Cursor& cursor, const Program& program);

}  // namespace warploom::tile
